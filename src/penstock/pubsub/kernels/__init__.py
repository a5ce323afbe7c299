"""Kernels: match blocks of publications against blocks of subscriptions; no keys, no Spark."""
