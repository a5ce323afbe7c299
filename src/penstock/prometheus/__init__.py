"""Metrics of runs for Prometheus, and decisions on metrics from Prometheus."""
