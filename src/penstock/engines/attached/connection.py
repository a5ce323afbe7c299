"""Connects to the session of an application: what it is, and what can be done with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engines.attached.application import Application
from penstock.engines.attached.connect_application import WHY_NOT, ConnectApplication
from penstock.engines.attached.engine import AttachedEngine, AttachedTiming
from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.foreign_executors import ForeignExecutors
from penstock.engines.attached.session_check import check_session, is_local
from penstock.engines.attached.spark_application import SparkApplication
from penstock.engines.attached.spark_executors import SparkExecutors, needs_python
from penstock.errors import InputError
from penstock.topics.steady_clock import SteadyClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A session whose settings were checked."""

    application: "SparkApplication | ConnectApplication"
    application_name: str
    master: str
    #: The queries to follow; none: all, also later ones.
    query_names: tuple[str, ...]
    level: ExecutorLevel
    #: Why executors cannot be changed; "" if they can, or if nobody asked for it.
    why_not: str = ""

    def make_engine(self, freshness_s: float, window_s: float) -> AttachedEngine:
        """Return the engine of this application."""
        return AttachedEngine(
            self.application,
            self.level,
            timing=AttachedTiming(freshness_s=freshness_s, window_s=window_s),
            clock=SteadyClock(),
            ends_with_queries=bool(self.query_names),
        )


def connect(
    spark: Any,
    queries: Sequence[Any] | None,
    *,
    acts: bool,
    bounds: tuple[int, int],
    delay_s: float,
) -> Connection:
    """Connect to a session; `acts` if executors shall be changed.

    Executors are released when fewer have been enough for `delay_s`.
    """
    check_spark(spark)
    if is_remote(spark):
        return _connect_remote(spark, queries, bounds, acts=acts)
    context = spark.sparkContext
    application = SparkApplication(spark, queries)
    master = str(context.master)
    why_not, host = "", None
    if acts:
        settings = dict(context.getConf().getAll())
        rules = check_session(master, settings, bounds, application.cores)
        why_not = rules.why_not
        if not why_not:
            has_python = any(map(needs_python, queries or spark.streams.active)) or not queries
            calls = SparkExecutors(spark, has_python=has_python)
            host = ForeignExecutors(calls, exits_alone=rules.exits_alone)
    count = (lambda: 1) if is_local(master) else application.count_executors
    return Connection(
        application=application,
        application_name=str(context.appName),
        master=master,
        query_names=_name_all(application, queries),
        level=ExecutorLevel(count, bounds, host=host, why_not=why_not, delay_s=delay_s),
        why_not=why_not,
    )


def is_remote(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def check_spark(spark: Any) -> None:
    """Refuse what is no session, or one that was stopped."""
    if is_remote(spark):
        return
    context = getattr(spark, "sparkContext", None)
    if context is None:
        problem = f"must be a SparkSession, got {type(spark).__name__}"
        raise InputError("spark", problem)
    if context._jsc is None or context._jsc.sc().isStopped():
        raise InputError("spark", "this session has been stopped")


def _connect_remote(
    spark: Any, queries: Sequence[Any] | None, bounds: tuple[int, int], *, acts: bool
) -> Connection:
    application = ConnectApplication(spark, queries)
    return Connection(
        application=application,
        application_name="spark-connect",
        master="spark-connect",
        query_names=_name_all(application, queries),
        level=ExecutorLevel(lambda: 1, bounds, why_not=WHY_NOT),
        why_not=WHY_NOT if acts else "",
    )


def _name_all(application: Application, queries: Sequence[Any] | None) -> tuple[str, ...]:
    if queries is None:
        return ()
    names = tuple(query.name for query in application.find_queries())
    if not names:
        raise InputError("queries", "have all ended")
    return names
