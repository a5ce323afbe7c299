"""Calibrates the simulator from runs on Spark, and simulates twins of such runs."""
