"""Starts the queries of a run, a few at a time, and again those whose processes died."""

import os
import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.port import Event
from penstock.engines.spark import failures
from penstock.engines.spark.places import Places

#: Queries that begin at once. Spark gives the process of a source ten seconds to start, which is
#: not enough on a busy machine if all of them do so together.
MOST_BEGINNING = max(1, os.cpu_count() or 1)
#: Times in a row, without a batch in between, that a query is started again.
MOST_TRIES = 5


class Starter:
    """The queries of a run; each goes on from its checkpoint when it is started again."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        #: By operator: how often it was started again, and the batch that it was at.
        self._tries: dict[str, tuple[int, int]] = {}
        #: By operator, as they were started last.
        self.queries: dict[str, StreamingQuery] = {}
        #: Operators that were stopped and will be started again; nobody looks after them.
        self._resting: set[str] = set()
        #: Operators that stopped for good, and why.
        self.failed: dict[str, str] = {}

    def add(self, operator: str, start: Callable[[], StreamingQuery]) -> None:
        """Take a query that is to be started."""
        self._starts[operator] = start

    def start(self) -> None:
        """Start all, the last that was added first."""
        for operator in reversed(self._starts):
            while not self.is_free:
                time.sleep(0.05)
            self.queries[operator] = self._starts[operator]()

    @property
    def beginning(self) -> int:
        """Queries whose sources are not there yet."""
        return sum(map(is_beginning, self.queries.values()))

    @property
    def is_free(self) -> bool:
        """Whether another query may begin now."""
        return self.beginning < MOST_BEGINNING

    def tries(self, operator: str, batch: int) -> int:
        """How often it was started again since that batch was the next one."""
        tries, before = self._tries.get(operator, (0, batch))
        return tries if before == batch else 0

    def watch(self, next_batch: Callable[[str], int]) -> list[Event]:
        """Look after queries that ended by themselves; return what happened, by the wall clock."""
        return [
            event
            for name, query in list(self.queries.items())
            if name not in self.failed and name not in self._resting and not query.isActive
            if (error := query.exception()) is not None
            if (event := self._care(name, error, next_batch(name))) is not None
        ]

    def _care(self, name: str, error: StreamingQueryException, batch: int) -> Event | None:
        told = failures.hear(self._places, name)
        if told is None and name in self._starts and self.tries(name, batch) < MOST_TRIES:
            # its own function did not fail, so a process of it died
            return self._start_again(name, error, batch) if self.is_free else None
        text = told.text(name) if told else "\n".join(str(error).splitlines()[:12])
        self.failed[name] = text
        return Event(at=time.time(), kind="failed", operator=name, numbers={"error": text})

    def _start_again(self, name: str, error: StreamingQueryException, batch: int) -> Event:
        """Start a query whose next batch is this one, and remember the try."""
        tries = self.tries(name, batch) + 1
        self._tries[name] = (tries, batch)
        self.queries[name] = self._starts[name]()
        numbers = {"tries": tries, "error": str(error).splitlines()[0]}
        return Event(at=time.time(), kind="revived", operator=name, numbers=numbers)

    def rest(self, operator: str) -> None:
        """Stop a query that `wake` starts again."""
        self._resting.add(operator)
        self.queries[operator].stop()

    def wake(self, operator: str) -> None:
        """Start a query that rests, or is gone."""
        if not self.queries[operator].isActive:
            self.queries[operator] = self._starts[operator]()
        self._resting.discard(operator)

    def give_up(self, operator: str, why: str) -> None:
        """A query that rests cannot be started any more."""
        self.failed[operator] = why

    @property
    def is_over(self) -> bool:
        """Whether an operator has failed and none works any more."""
        return bool(self.failed) and not any(query.isActive for query in self.queries.values())

    def close(self) -> None:
        """Start nothing again from here on."""
        self._starts.clear()


def is_between_batches(query: StreamingQuery) -> bool:
    """Whether no task of the query runs now."""
    return not query.isActive or not query.status["isTriggerActive"]


def is_beginning(query: StreamingQuery) -> bool:
    """Whether the process of its source is not there yet."""
    return query.isActive and str(query.status["message"]).startswith("Initializing")
