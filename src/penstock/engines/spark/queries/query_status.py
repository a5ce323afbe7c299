"""The status of a running query, as Spark reports it."""

from pyspark.sql.streaming.query import StreamingQuery


def is_working(query: StreamingQuery) -> bool:
    """Whether a batch with rows runs now."""
    if not query.isActive:
        return False
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def is_between_batches(query: StreamingQuery) -> bool:
    """Whether no task of the query runs now."""
    return not query.isActive or not query.status["isTriggerActive"]


def is_starting(query: StreamingQuery) -> bool:
    """Whether the process of its source is still starting."""
    return query.isActive and str(query.status["message"]).startswith("Initializing")
