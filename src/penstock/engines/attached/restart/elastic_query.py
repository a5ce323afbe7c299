"""A query that is started by a factory, with a number of partitions that may change."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    #: Starts a query with a number of partitions.
    QueryFactory = Callable[[SparkSession, int], StreamingQuery]


class ElasticQuery:
    """The handle of a query that `attach` may start again with another number of partitions."""

    def __init__(
        self,
        factory: "QueryFactory",
        *,
        bounds: tuple[int, int],
        initial: int,
        deadline_s: float,
    ) -> None:
        """Use `penstock.elastic` to get one."""
        self.factory, self.bounds, self.deadline_s = factory, bounds, deadline_s
        #: The number of partitions that the running query was started with.
        self.partitions = initial
        self._query: StreamingQuery | None = None
        self._is_stopped = False

    @property
    def query(self) -> "StreamingQuery | None":
        """The running query; None before `attach` has started it. Each change makes another one."""
        return self._query

    @property
    def is_active(self) -> bool:
        """Whether the query runs; also False for a moment during a change."""
        return self._query is not None and bool(self._query.isActive)

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopped

    def stop(self) -> None:
        """Stop the query for good."""
        self._is_stopped = True
        if self._query is not None:
            self._query.stop()

    def _note_start(self, query: Any, partitions: int) -> None:
        """Note the query that runs from now on; it is stopped if `stop` was called meanwhile."""
        self._query, self.partitions = query, partitions
        if self._is_stopped:
            query.stop()
