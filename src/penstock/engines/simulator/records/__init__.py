"""The simulator at the resolution of single records."""
