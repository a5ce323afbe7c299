"""Queries that are stopped and started again with another number of partitions."""
