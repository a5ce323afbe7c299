"""Runs operators as Structured Streaming queries, reports progress, carries out decisions."""
