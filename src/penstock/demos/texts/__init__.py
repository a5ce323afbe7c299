"""Texts for the ready pipelines: how they are made, taken apart and judged."""
