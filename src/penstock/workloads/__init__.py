"""Offered load over time: patterns and traces as pure `rate(t)`, with exact counts."""
