"""What demo pipelines share: emulated services, the import of scikit-learn."""
