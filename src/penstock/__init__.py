"""Penstock: elastic stream processing on Spark."""

__version__ = "0.1.0"
