"""Helpers of the benchmarks. Only the script itself may hold what Spark pickles."""
