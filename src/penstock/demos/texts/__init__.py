"""Texts for the demo pipelines: generation, parsing, classification."""
