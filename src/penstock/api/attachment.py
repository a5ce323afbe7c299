"""Attaches Penstock to streaming queries that a Spark application already runs."""

import atexit
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.api.attach_arguments import (
    read_bounds,
    read_duration,
    read_elastics,
    read_queries,
)
from penstock.api.run_handle import Run
from penstock.control.registry import DEFAULT_POLICY
from penstock.core.policy import Policy
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.errors import PenstockError
from penstock.runs.attached_run import (
    DRY_RUN,
    EXECUTORS,
    INTERVAL_S,
    RESTART,
    AttachSpec,
    FollowingEngine,
    PreparedAttachment,
    check_mode,
    default_directory,
    follow_application,
    prepare_attachment,
)
from penstock.runs.observer import StopRequest
from penstock.runs.run_directory import read_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engines.attached.connection import Connection

#: Seconds that the thread may take to leave the application.
DETACH_S = 30.0
#: The same when the program ends, which waits for it.
EXIT_S = 5.0
#: Executors are released when fewer have been enough for this long, or for one interval.
RELEASE_S = 15.0


def attach(
    spark: "SparkSession",
    queries: Any = None,
    *,
    freshness: str | float,
    executors: tuple[int, int] = (1, 8),
    policy: str | Policy = DEFAULT_POLICY,
    params: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
    mode: str = EXECUTORS,
    interval_s: float = INTERVAL_S,
    out: str | Path | None = None,
    quiet: bool = False,
) -> "Attachment":
    """Follow streaming queries, and scale the executors of their application or their partitions.

    `queries` is one query or several; without it all active queries of the session are followed,
    also later ones. `freshness` is the age that rows may have when they are processed, "30 s".
    `executors` are the fewest and the most. A policy decides, under guards, and everything is
    recorded in the run directory `out`, so that `penstock explain`, `report`, `replay`,
    `dashboard` and `top` work on it. The queries themselves are not changed.

    `mode="restart"` changes partitions in place of executors: then `queries` come from
    `penstock.elastic`, are started by this call, and are stopped and started again with the number
    of partitions that the policy wants. `executors` are not used. This works in `local[...]`, too.

    `mode="dry-run"` advises and changes nothing. `local[...]` masters and Spark Connect sessions
    have no executors that could be changed: there it advises, too, and says so on stderr unless
    it is `quiet`.

        query = words.writeStream.format("kafka").start()
        attached = penstock.attach(spark, query, freshness="30 s", executors=(1, 8))
        print(attached.explain())
        attached.detach()

    `InputError` names an argument or a setting of the session that is wrong.
    """
    check_mode(mode)
    options: dict[str, Any] = {
        "policy": policy.name if isinstance(policy, Policy) else policy,
        "params": dict(params or {}),
        "guards": dict(guards or {}),
        "freshness_s": read_duration(freshness, "freshness"),
        "interval_s": interval_s,
    }
    given = policy if isinstance(policy, Policy) else None
    place = None if out is None else Path(out)
    elastics = read_elastics(queries, mode)
    if elastics:
        return _attach_elastics(spark, elastics, mode, options, given, place, quiet=quiet)
    bounds, plain = read_bounds(executors), read_queries(queries)
    acts, delay_s = mode == EXECUTORS, min(RELEASE_S, interval_s)
    connection = _connect(spark, plain, acts=acts, bounds=bounds, delay_s=delay_s)
    spec = AttachSpec(
        application=connection.application_name,
        master=connection.master,
        queries=connection.query_names,
        executors=bounds,
        mode=DRY_RUN if connection.why_not else mode,
        note=connection.why_not if mode != DRY_RUN else "",
        **options,
    )
    prepared = prepare_attachment(spec, given)
    engine = connection.make_engine(spec.freshness_s, prepared.window_s)
    return _follow(prepared, engine, place, quiet=quiet)


def _attach_elastics(
    spark: "SparkSession",
    elastics: list[ElasticQuery],
    mode: str,
    options: dict[str, Any],
    policy: Policy | None,
    place: Path | None,
    *,
    quiet: bool,
) -> "Attachment":
    """Start queries of factories and follow them; nothing is started if an argument is wrong."""
    from penstock.engines.attached.restart.elastic_connection import (  # noqa: PLC0415  (Spark)
        start_and_connect,
        stop_all,
    )

    draft = AttachSpec(application="queries", master="", mode=mode, **options)
    prepare_attachment(draft, policy)
    connection = start_and_connect(spark, elastics)
    try:
        note = connection.why_not if mode == RESTART else ""
        spec = AttachSpec(
            application=connection.application_name,
            master=connection.master,
            queries=connection.query_names,
            partitions={query.name: query.elastic.bounds for query in connection.queries},
            mode=DRY_RUN if note else mode,
            note=note,
            **options,
        )
        prepared = prepare_attachment(spec, policy)
        directory = place or default_directory(spec)
        acts, window_s = spec.mode == RESTART, prepared.window_s
        engine = connection.make_engine(directory, spec.freshness_s, window_s, acts=acts)
        return _follow(prepared, engine, directory, quiet=quiet)
    except BaseException:
        stop_all(elastics)
        raise


def _follow(
    prepared: PreparedAttachment, engine: FollowingEngine, place: Path | None, *, quiet: bool
) -> "Attachment":
    spec = prepared.spec
    directory = place or default_directory(spec)
    execution = AttachedExecution(prepared, engine, directory)
    execution.start()
    if spec.note and not quiet:
        print(f"penstock: {spec.note}", file=sys.stderr)
    return Attachment(directory, execution, spec)


class AttachedExecution:
    """The thread that follows an application. It ends with the process."""

    def __init__(
        self, prepared: PreparedAttachment, engine: FollowingEngine, directory: Path
    ) -> None:
        self._prepared, self._engine, self._directory = prepared, engine, directory
        self._stop = StopRequest()
        self._error: BaseException | None = None
        self._is_begun = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="penstock-attach", daemon=True)

    def start(self) -> None:
        """Start it; return when its directory can be read."""
        self._thread.start()
        atexit.register(self._leave)
        self._is_begun.wait()
        if self._error is not None:
            self.wait(None)

    def _follow(self) -> None:
        begin = self._is_begun.set
        try:
            follow_application(self._prepared, self._engine, self._directory, self._stop, begin)
        except BaseException as error:  # the application must not notice
            self._error = error
        finally:
            begin()
            atexit.unregister(self._leave)

    def _leave(self) -> None:
        """Complete the run directory when the program ends without `detach`."""
        self.request_stop()
        self._thread.join(EXIT_S)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def request_stop(self) -> None:
        """Ask it to leave the application alone."""
        self._stop.is_asked = True
        self._engine.wake()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end; False if it goes on. Raises the error that ended it, once."""
        self._thread.join(timeout_s)
        error, self._error = self._error, None
        if error is None:
            return not self.is_alive
        if isinstance(error, PenstockError):
            raise error
        raise PenstockError(f"the attached run ended: {error}") from error


class Attachment(Run):
    """A run that follows the queries of an application; its figures are those of every run."""

    def __init__(self, directory: Path, execution: AttachedExecution, spec: AttachSpec) -> None:
        """Use `penstock.attach` to get one."""
        super().__init__(directory, lambda: read_run(directory), execution)
        #: Why it only advises; "" if it acts, or if it was asked for advice only.
        self.note = spec.note
        #: What it changes: "executors", partitions by "restart", or nothing ("dry-run").
        self.mode = spec.mode
        self._interval_s = spec.interval_s

    def explain(self, at: float | None = None, operator: str | None = None) -> str:
        """Explain why executors changed and why not: the whole run, or the tick nearest to `at`."""
        if not self._ticks:
            return f"nothing was decided yet: the first decision comes after {self._interval_s:g} s"
        return super().explain(at, operator)

    def detach(self, timeout_s: float = DETACH_S) -> None:
        """Leave the application alone; its queries and its executors stay as they are."""
        self.stop(timeout_s)


def _connect(spark: Any, queries: list[Any] | None, **options: Any) -> "Connection":
    from penstock.engines.attached.connection import connect  # noqa: PLC0415  (loads Spark)

    return connect(spark, queries, **options)
