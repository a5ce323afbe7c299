"""Where records wait: a durable, ordered log of rows in a directory, written by one, read by many.

Begin with `topic.Topic`; `writer.TopicWriter` appends to one, `check.check` finds what is damaged.
"""
