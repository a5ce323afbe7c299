"""An application on Spark Connect, which can be observed only.

The client of Spark Connect has no access to executors and tasks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.engines.attached.application import Report
from penstock.engines.attached.file_backlog import FileCounter
from penstock.engines.attached.spark_application import choose_name
from penstock.engines.spark.queries.causes import find_cause

WHY_NOT = "Spark Connect gives no access to executors: acting needs a classic session on the driver"


class ConnectQuery:
    """A streaming query of a Spark Connect session."""

    trigger_s: float | None = None

    def __init__(self, query: Any, name: str) -> None:
        self._query, self.name, self.query_id = query, name, str(query.id)
        self._last = ""

    def read_new(self) -> Sequence[Report]:
        """Return the progress since the last call, oldest first."""
        reports = [dict(progress) for progress in self._query.recentProgress]
        new = [report for report in reports if str(report.get("timestamp") or "") > self._last]
        if new:
            self._last = str(new[-1].get("timestamp") or self._last)
        return list(map(Report, new))

    def is_working(self) -> bool:
        """Whether a trigger is active."""
        return bool(self._query.status.get("isTriggerActive"))

    def is_active(self) -> bool:
        """Whether it has not ended."""
        return bool(self._query.isActive)

    def read_error(self) -> str:
        """Return the cause of the error that ended it; "" if there is none."""
        error = self._query.exception()
        return find_cause(str(error)).message if error is not None else ""

    def make_counter(self, number: int, description: str) -> FileCounter | None:  # noqa: ARG002
        """Return nothing: the files are on another machine."""
        return None


class ConnectApplication:
    """The queries of a Spark Connect session, those given or all active ones."""

    cores = 1
    locality_wait_s: float | None = None

    def __init__(self, spark: Any, queries: Iterable[Any] | None) -> None:
        self._spark, self._given = spark, None if queries is None else list(queries)
        self._queries: dict[str, ConnectQuery] = {}

    def find_queries(self) -> Sequence[ConnectQuery]:
        """Return the active queries, also new ones."""
        active = self._given if self._given is not None else self._spark.streams.active
        queries = []
        for query in active:
            key = str(query.runId)
            if key not in self._queries:
                taken = {other.name for other in self._queries.values()}
                name = choose_name(query.name, str(query.id), taken.__contains__)
                self._queries[key] = self.follow(query, name)
            if self._queries[key].is_active():
                queries.append(self._queries[key])
        return queries

    def follow(self, query: Any, name: str) -> ConnectQuery:
        """Return a query that is followed under a name."""
        return ConnectQuery(query, name)

    def is_alive(self) -> bool:
        """Whether the session answers."""
        try:
            return not bool(getattr(self._spark, "is_stopped", False))
        except Exception:
            return False

    def count_tasks(self) -> Mapping[str, int]:
        """Return nothing: tasks are not visible."""
        return {}
