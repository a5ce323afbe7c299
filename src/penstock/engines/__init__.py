"""What runs a pipeline and can be observed and rescaled: a simulator, or Spark."""
