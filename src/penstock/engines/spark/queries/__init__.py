"""Streaming queries: how they are built, started, supervised and restarted."""
