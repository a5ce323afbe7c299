"""Kafka topics of users as Spark data sources: a streaming source, and a sink that adds once."""
