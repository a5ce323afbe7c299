"""Operators with Spark's own state: repartition, rescale, late rows."""
