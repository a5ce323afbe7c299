"""Model checker of the scaling protocol: every interleaving in small pipelines."""
