"""Queries of another application: their progress becomes the batch records of our own engine."""
