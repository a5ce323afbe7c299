"""Fixtures for tests with a Spark engine."""

from tests.spark_engines import places, started

__all__ = ["places", "started"]
