"""Experiments: single runs, grids of them, and what the papers claim."""
