"""Services that demo pipelines call and wait for."""
