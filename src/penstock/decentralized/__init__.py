"""Scaling without a controller: every operator instance decides alone."""
