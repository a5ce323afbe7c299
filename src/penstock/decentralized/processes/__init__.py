"""Scaling without a controller in real processes that talk over TCP on this machine."""
