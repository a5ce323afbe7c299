"""Helpers of the benchmarks."""
