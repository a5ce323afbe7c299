"""The simulator at the resolution of micro-batches, calibrated on runs on Spark."""
