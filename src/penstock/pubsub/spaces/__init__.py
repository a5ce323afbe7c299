"""Spaces: how publications and subscriptions are encoded for the matcher, plain or encrypted."""
