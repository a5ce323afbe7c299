"""Shared parts of the demo pipelines: emulated services, the import of scikit-learn."""
