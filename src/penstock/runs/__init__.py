"""One run, simulated or on Spark: spec, execution, directory, journal, scores."""
