"""Figures from the progress of a query with Spark's own state: late rows, rows of state."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery


class LateRowCounter:
    """Counts the rows that Spark has dropped as late in one query."""

    def __init__(self) -> None:
        self._batch = -1

    def read_new(self, progresses: Iterable[Mapping[str, Any]]) -> int:
        """Return the number of late rows in the batches since the last call.

        >>> lateness = LateRowCounter()
        >>> first = {"batchId": 3, "stateOperators": [{"numRowsDroppedByWatermark": 2}]}
        >>> lateness.read_new([first]), lateness.read_new([first])
        (2, 0)
        """
        late = 0
        for progress in progresses:
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                late += sum(
                    max(0, state["numRowsDroppedByWatermark"])
                    for state in progress["stateOperators"]
                )
        return late


def state_rows(query: StreamingQuery) -> int:
    """Return the rows of state after the last batch, as Spark reports them."""
    progress = query.lastProgress
    return sum(each["numRowsTotal"] for each in progress["stateOperators"]) if progress else 0
