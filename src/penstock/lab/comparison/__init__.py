"""Compares runs: figures with confidence intervals, and rankings."""
