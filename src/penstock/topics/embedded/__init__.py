"""The embedded topic: a durable, ordered log of rows in a directory."""
