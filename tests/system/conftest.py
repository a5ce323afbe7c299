"""Fixtures for tests with a Spark engine."""

from tests.spark_engines import layout, started

__all__ = ["layout", "started"]
