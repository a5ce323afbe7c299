"""Runs side by side: figures with confidence intervals, rankings."""
