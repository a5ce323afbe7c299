"""Penstock from Python: what the commands do, as functions that return objects."""
