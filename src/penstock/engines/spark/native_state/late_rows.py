"""Rows that Spark's own state dropped because they came after the watermark."""

from collections.abc import Iterable, Mapping
from typing import Any


class LateRowCounter:
    """Follows the progress of one query, which tells of each batch."""

    def __init__(self) -> None:
        self._batch = -1

    def read_new(self, progresses: Iterable[Mapping[str, Any]]) -> int:
        """Return how many rows were late in the batches since the last call.

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
