"""An application whose queries are started by factories: each keeps its name and its history."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.engines.attached.application import Application, FollowedQuery, Report
from penstock.engines.attached.file_backlog import FileCounter
from penstock.engines.attached.restart.elastic_query import ElasticQuery


class ElasticFollowedQuery:
    """The runs of one query, one after the other, as if they were one."""

    def __init__(
        self, name: str, elastic: ElasticQuery, follow: Callable[[Any, str], FollowedQuery]
    ) -> None:
        """`follow` makes the followed query of a run, under a name."""
        self._elastic, self._follow = elastic, follow
        self._run = elastic.query
        self._query = follow(self._run, name)
        self.name, self.query_id = name, self._query.query_id
        self.trigger_s = self._query.trigger_s
        #: Whether a change is in progress, so that a query that does not run has not ended.
        self.is_changing = False

    def read_new(self) -> Sequence[Report]:
        """Return the progress since the last call, also the last one of an earlier run."""
        reports = list(self._query.read_new())
        if self._elastic.query is not self._run:
            self._run = self._elastic.query
            self._query = self._follow(self._run, self.name)
            reports += self._query.read_new()
        return reports

    def is_working(self) -> bool:
        """Whether a trigger is active."""
        return self._elastic.is_active and self._query.is_working()

    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.is_changing or self._elastic.is_active

    def read_error(self) -> str:
        """Return why it failed; "" if it did not."""
        return self._query.read_error()

    def make_counter(self, number: int, description: str) -> FileCounter | None:
        """Return a counter of unread files for a source that reports no backlog."""
        return self._query.make_counter(number, description)


class ElasticApplication:
    """An application of which only the queries of factories are followed."""

    def __init__(
        self,
        application: Application,
        elastics: Mapping[str, ElasticQuery],
        follow: Callable[[Any, str], FollowedQuery],
    ) -> None:
        """`follow` makes the followed query of a run, under a name."""
        self._application = application
        self.cores, self.locality_wait_s = application.cores, application.locality_wait_s
        self.queries: dict[str, ElasticFollowedQuery] = {}
        for name, elastic in elastics.items():
            self.queries[name] = ElasticFollowedQuery(name, elastic, follow)

    def find_queries(self) -> Sequence[ElasticFollowedQuery]:
        """Return the queries that have not ended."""
        return [query for query in self.queries.values() if query.is_active()]

    def is_alive(self) -> bool:
        """Whether the application still runs."""
        return self._application.is_alive()

    def count_tasks(self) -> Mapping[str, int]:
        """Return the tasks that each executor has run."""
        return self._application.count_tasks()
