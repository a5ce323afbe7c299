"""The engine port without a cluster: fluid and record level, one profile per kind of engine."""
