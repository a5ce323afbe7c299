"""Published experiments: their cells, claims and printed tables."""
