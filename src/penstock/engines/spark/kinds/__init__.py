"""Operator kinds on Spark, one module each: query, source, task, records and rescale."""
