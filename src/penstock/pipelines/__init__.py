"""Pipelines: their declaration, validation, description, loading and try-out.

Start with `pipeline.Pipeline`, also available as `penstock.Pipeline`.
"""
