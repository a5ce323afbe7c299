"""Starts the queries of a run, a few at a time, and again those whose processes died."""

import os
import time

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Queries that begin at once. Spark gives the process of a source ten seconds to start, which is
#: not enough on a busy machine if all of them do so together.
MOST_BEGINNING = max(1, os.cpu_count() or 1)
#: Times in a row, without a batch in between, that a query is started again.
MOST_TRIES = 5


class Starter:
    """The queries of a run; each goes on from its checkpoint when it is started again."""

    def __init__(self) -> None:
        self._writers: dict[str, DataStreamWriter] = {}
        #: By operator: how often it was started again, and the batch that it was at.
        self._tries: dict[str, tuple[int, int]] = {}
        #: By operator, as they were started last.
        self.queries: dict[str, StreamingQuery] = {}

    def add(self, operator: str, writer: DataStreamWriter) -> None:
        """Take a query that is to be started."""
        self._writers[operator] = writer

    def start(self) -> None:
        """Start all, the last that was added first."""
        for operator in reversed(self._writers):
            while not self.is_free:
                time.sleep(0.05)
            self.queries[operator] = self._writers[operator].start()

    @property
    def beginning(self) -> int:
        """Queries whose sources are not there yet."""
        return sum(map(_is_beginning, self.queries.values()))

    @property
    def is_free(self) -> bool:
        """Whether another query may begin now."""
        return self.beginning < MOST_BEGINNING

    def tries(self, operator: str, batch: int) -> int:
        """How often it was started again since that batch was the next one."""
        tries, before = self._tries.get(operator, (0, batch))
        return tries if before == batch else 0

    def may_help(self, operator: str, batch: int) -> bool:
        """Whether to start it again: not for ever, and not when all are about to stop."""
        return operator in self._writers and self.tries(operator, batch) < MOST_TRIES

    def start_again(self, operator: str, batch: int) -> None:
        """Start a query whose next batch is this one, and remember the try."""
        self._tries[operator] = (self.tries(operator, batch) + 1, batch)
        self.queries[operator] = self._writers[operator].start()

    def close(self) -> None:
        """Start nothing again from here on."""
        self._writers.clear()


def _is_beginning(query: StreamingQuery) -> bool:
    """Whether the process of its source is not there yet."""
    return query.isActive and str(query.status["message"]).startswith("Initializing")
