"""Starts the queries of factories, and connects to their session."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.engines.attached.connect_application import WHY_NOT
from penstock.engines.attached.connection import Connection, check_spark, connect, is_remote
from penstock.engines.attached.engine import AttachedTiming
from penstock.engines.attached.restart.elastic_application import ElasticApplication
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.engines.attached.restart.query_restarter import QueryRestarter
from penstock.engines.attached.restart.restart_engine import RestartEngine
from penstock.engines.attached.restart.restart_level import ElasticMember, RestartLevel
from penstock.engines.attached.restart.restart_log import RestartLog
from penstock.engines.attached.restart.spark_restart_host import SparkRestartHost, call_factory
from penstock.engines.attached.spark_application import choose_name
from penstock.engines.spark.native_state.repartition import use_in_this_thread
from penstock.topics.steady_clock import SteadyClock


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedQuery:
    """A query that its factory has started."""

    name: str
    elastic: ElasticQuery
    host: SparkRestartHost
    #: The shuffle partitions that the factory has set.
    shuffle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticConnection:
    """A session with queries that factories have started."""

    spark: Any
    connection: Connection
    queries: Sequence[StartedQuery]

    @property
    def why_not(self) -> str:
        """Return why queries cannot be started again; "" if they can."""
        return WHY_NOT if is_remote(self.spark) else ""

    @property
    def application_name(self) -> str:
        """Return the name of the application."""
        return self.connection.application_name

    @property
    def master(self) -> str:
        """Return the master of the session."""
        return self.connection.master

    @property
    def query_names(self) -> tuple[str, ...]:
        """Return the names of all queries."""
        return tuple(query.name for query in self.queries)

    def make_engine(
        self, directory: Path, freshness_s: float, window_s: float, *, acts: bool
    ) -> RestartEngine:
        """Return the engine of these queries; `acts` if it may start them again."""
        application, log = self.connection.application, RestartLog(directory)
        runs = {query.name: query.elastic for query in self.queries}
        return RestartEngine(
            ElasticApplication(application, runs, application.follow),
            self.connection.level,
            RestartLevel(
                {query.name: _make_member(query, log) for query in self.queries},
                partial(use_in_this_thread, self.spark),
            ),
            timing=AttachedTiming(freshness_s=freshness_s, window_s=window_s),
            clock=SteadyClock(),
            acts=acts and not self.why_not,
        )


def _make_member(query: StartedQuery, log: RestartLog) -> ElasticMember:
    first = {query.elastic.partitions: query.shuffle}
    return ElasticMember(
        elastic=query.elastic,
        restarter=QueryRestarter(query.name, query.host, log, first),
        explain_refusal=query.host.explain_refusal,
    )


def start_and_connect(spark: Any, elastics: Sequence[ElasticQuery]) -> ElasticConnection:
    """Start all queries; if one of them cannot be started, those before it are stopped again."""
    check_spark(spark)
    try:
        started: list[StartedQuery] = []
        for elastic in elastics:
            started.append(_start(spark, elastic, {query.name for query in started}))
        queries = [elastic.query for elastic in elastics]
        connection = connect(spark, queries, acts=False, bounds=(1, 1), delay_s=0.0)
    except BaseException:
        stop_all(elastics)
        raise
    return ElasticConnection(spark=spark, connection=connection, queries=started)


def _start(spark: Any, elastic: ElasticQuery, taken: Collection[str]) -> StartedQuery:
    host, shuffle = SparkRestartHost(spark, elastic), elastic.partitions
    if is_remote(spark):
        elastic._note_start(call_factory(elastic, spark, elastic.partitions), elastic.partitions)
    else:
        shuffle = host.start(elastic.partitions)
    query: Any = elastic.query
    name = choose_name(query.name, str(query.id), taken.__contains__)
    return StartedQuery(name=name, elastic=elastic, host=host, shuffle=shuffle)


def stop_all(elastics: Sequence[ElasticQuery]) -> None:
    """Stop the queries that run."""
    for elastic in elastics:
        if elastic.is_active:
            elastic.stop()
