"""Starts Spark for a run: the session, the operators and the pool of warm replicas."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Generic, TypeVar

from pyspark.sql import SparkSession

from penstock.engines.spark.chain_leftovers import process_leftovers
from penstock.engines.spark.cluster.executor_client import ExecutorClient
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.cluster.masters import Master
from penstock.engines.spark.cluster.session import (
    active_session,
    borrow_session,
    end_session,
    module_list,
    start_session,
    task_slots,
)
from penstock.engines.spark.cluster.shared_directory import check_shared
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.cluster.worker_process import needed_modules, write_module_list
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming, compute_min_interval_s
from penstock.engines.spark.run_layout import RunLayout
from penstock.engines.spark.topics_place import place_topics
from penstock.files.lock import Lock
from penstock.runs.observer import RunObserver
from penstock.runs.preparation import LaunchOptions
from penstock.runs.run_lock import (
    keep_signal_handlers,
    quiet_spark_loggers,
    silence_accumulator_server,
)
from penstock.runs.spark_preparation import PreparedSparkRun

#: Replicas that are kept ready at most.
MAX_WARM = 32

T = TypeVar("T")


class SparkLauncher:
    """Starts the engine of one run with the replicas that it begins with."""

    def __init__(
        self,
        prepared: PreparedSparkRun,
        layout: RunLayout,
        watch: RunObserver,
        initial: Mapping[str, int],
        start_s: float,
        options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
    ) -> None:
        """`start_s` is the time of the run at which it begins, or continues."""
        self._prepared, self._layout, self._watch = prepared, layout, watch
        self._initial, self._start_s, self._options = initial, start_s, options

    def start(self, lock: Lock, ending_with: ExitStack) -> SparkEngine:
        """Start Spark, then operators and the pool of replicas side by side."""
        say, began = self._watch.say, time.monotonic()
        place_topics(self._prepared.pipeline, self._layout)  # mistakes show before Spark starts
        say("starting Spark")
        session = self._session(lock, ending_with)
        spark_s = time.monotonic() - began
        replicas, number = min(self._room, MAX_WARM), len(self._prepared.pipeline.operators)
        of = "operator" if number == 1 else "operators"
        say(f"starting {number} {of} and a pool of {replicas} replicas")
        pool = BackgroundCall(lambda: start_workers(session, replicas, self._layout.run / "warm"))
        pool.start()
        for name, rules in self._prepared.voting.items():
            if rules.is_fixed:
                say(f"{name} keeps its replicas: only a controller can stop it for a change")
        if self._prepared.pipeline.origin is not self._prepared.pipeline:
            self._process_leftovers(session)
        engine = self._engine(session)
        engine.start(pool.result)
        ending_with.callback(engine.stop)
        both_s = time.monotonic() - began - spark_s
        parts = f"Spark {spark_s:.1f}, then operators and replicas {both_s:.1f}"
        say(f"started in {spark_s + both_s:.1f} s ({parts})")
        return engine

    def _session(self, lock: Lock, ending_with: ExitStack) -> SparkSession:
        """Start Spark; meanwhile find out what workers shall import."""
        pipeline, log = self._prepared.pipeline, self._layout.log
        quiet_spark_loggers()
        if self._options.session is not None:
            borrowed = borrow_session(self._options.session)
            ending_with.enter_context(active_session(borrowed))
            return borrowed
        modules = BackgroundCall(lambda: needed_modules(pipeline.operators.values()))
        with keep_signal_handlers():
            session = start_session(
                pipeline.name,
                self._room,
                log,
                lock.fileno(),
                self._master,
                self._first_executors(),
                modules.start,
            )
        ending_with.callback(end_session, session)
        silence_accumulator_server(session)
        if self._master.cluster:
            what = "topics" if pipeline.cluster is None else "commits and state"
            self._watch.say(f"{what} are files: all executors need {self._layout.run}")
            check_shared(session, self._layout.run, self._room)
        write_module_list(module_list(log), modules.result())
        return session

    @property
    def _master(self) -> Master:
        return self._prepared.master or Master(cores=self._prepared.most_replicas)

    @property
    def _room(self) -> int:
        """Tasks that may run at once at the start."""
        if self._options.session is not None:
            return task_slots(self._options.session)
        return self._master.cores * self._first_executors()

    def _process_leftovers(self, session: SparkSession) -> None:
        process_leftovers(
            session,
            self._prepared.pipeline,
            self._layout,
            self._timing,
            retry_for_s=self._prepared.retry_for_s,
            say=self._watch.say,
            report=self._watch.report,
        )

    @property
    def _timing(self) -> BatchTiming:
        prepared = self._prepared
        return BatchTiming(
            batch_s=prepared.spec.batch_s,
            min_interval_s=compute_min_interval_s(prepared.spec.batch_s),
            window_s=prepared.window_s,
            overhead_share=prepared.spec.overhead_share,
        )

    def _engine(self, session: SparkSession) -> SparkEngine:
        prepared = self._prepared
        return SparkEngine(
            session,
            prepared.pipeline,
            self._layout,
            timing=self._timing,
            initial=self._initial,
            begin_s=self._start_s,
            executors=self._executors(session),
            retry_for_s=prepared.retry_for_s,
            say=self._watch.say,
            report=self._watch.report,
            available_now=self._options.available_now,
            voting=prepared.voting,
        )

    def _executors(self, session: SparkSession) -> Executors | None:
        rules = self._prepared.executors
        return Executors(ExecutorClient(session), rules, self._first_executors()) if rules else None

    def _first_executors(self) -> int:
        """Executors that the replicas at the start need."""
        rules, operators = self._prepared.executors, self._prepared.pipeline.operators
        declared = {name: op.options.replicas for name, op in operators.items()}
        replicas = {**declared, **self._initial}
        return rules.needed(sum(replicas.values())) if rules is not None else 1


class BackgroundCall(Generic[T]):
    """Calls a function in a thread; a process that ends does not wait for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._call, daemon=True)

    def start(self) -> None:
        """Start the call, unless it has started."""
        if self._thread.ident is None:
            self._thread.start()

    def _call(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Wait for the result; raise what the function raised."""
        self.start()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]
