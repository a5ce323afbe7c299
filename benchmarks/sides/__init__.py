"""What benchmarks lay beside each other. Only the script itself may hold what Spark pickles."""
