"""One run on Spark: a pipeline, its producers and the loop that scales it, in one directory.

The same directory given again goes on where it was: nothing that was written is lost, and
nothing comes twice, whatever was killed when.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.control.clock import run_clock
from penstock.control.execution import Patience
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.journal import JournalWriter, read_newest, read_recent
from penstock.runs.journal_parts import Limits
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.runs.replay import recall
from penstock.runs.run_directory import SPEC_FILE, JOURNAL, finish_run, open_run
from penstock.runs.scores import rescales_possible
from penstock.runs.tick_json import add_spent, rename_operators
from penstock.core.snapshot import Snapshot
from penstock.engines.spark.cluster.executor_client import ExecutorClient
from penstock.engines.spark.operator_config import BatchTiming, min_interval_for
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.cluster.java import check_java
from penstock.engines.spark.cluster.masters import Master
from penstock.engines.spark.run_layout import RunLayout
from penstock.engines.spark.cluster.worker_imports import modules_of, write_list
from penstock.engines.spark.cluster.session import end_session, preload_list, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.errors import InputError
from penstock.runs.background_call import BackgroundCall
from penstock.runs.record_counts import count_records, readers_of
from penstock.runs.pipeline_changes import check_description, earlier_names
from penstock.runs.producers import ProducerThreads
from penstock.runs.run_lock import (
    remove_empty_run,
    run_lock,
    hush_logging,
    silence_accumulator_server,
    keep_signal_handlers,
    spark_errors,
)
from penstock.runs.operator_totals import read_accounts
from penstock.runs.spark_scores import SparkScores, offered_rate, records
from penstock.runs.output_size import bound_output
from penstock.runs.spark_preparation import PreparedSparkRun
from penstock.runs.observer import StopCondition, RunProgress, StopRequest, RunObserver, ObservedEngine
from penstock.files.lock import Lock

#: Replicas that are kept ready at most.
MAX_WARM = 32


def run_on_spark(
    prepared: PreparedSparkRun,
    directory: Path,
    watch: RunObserver,
    stop: StopRequest,
    allow_removal: Collection[str] = (),
) -> dict[str, Any]:
    """Run it to its end, or go on with what the directory holds; return its figures.

    To be called in the main thread; a signal handler may ask it to stop. Operators that were
    removed from the pipeline of a run must be named in `allow_removal`.
    """
    check_java()
    with run_lock(directory, watch.say) as lock:
        is_new = not (directory / SPEC_FILE).is_file()
        if not is_new:  # before anything of the run is touched
            for note in check_description(prepared.pipeline, directory, allow_removal):
                watch.say(note)
        try:
            limits = Limits.of(prepared.spec.journal_mb)
            header, spec = prepared.header(), prepared.spec.to_json()
            with open_run(directory, spec, header, limits=limits) as journal:
                if is_new:
                    check_description(prepared.pipeline, directory)
                with spark_errors(directory):
                    result = _Run(prepared, directory, watch, stop, journal).carry_out(lock)
        except InputError:
            # some mistakes show when Spark looks at them; leave no half a run
            if is_new and not remove_empty_run(directory):
                watch.say(f"{directory} holds data and is kept")
            raise
        finish_run(directory, result)
    return result


class _Run:
    """The parts of one run, and how they hang together."""

    def __init__(
        self, prepared: PreparedSparkRun, directory: Path, watch: RunObserver, stop: StopRequest, journal: JournalWriter
    ) -> None:
        self._prepared, self._watch, self._stop, self._journal = prepared, watch, stop, journal
        self._layout = RunLayout(directory.resolve())
        self._readers = readers_of(prepared.pipeline)
        self._outcome = SparkScores(prepared.objective_s, self._readers)
        self._decider = prepared.decider()
        #: What the last tick before a resumption told.
        self._before: Tick | None = None
        self._recall(directory / JOURNAL)
        journal.carry = self._outcome.to_json

    def _recall(self, path: Path) -> None:
        """Remember the earlier part of a run that goes on."""
        if not self._journal.start_s:
            return
        operators = self._prepared.pipeline.operators
        scaled = [name for name, operator in operators.items() if operator.scales]
        recall(read_recent(path), self._decider, scaled)
        carried, ticks = read_newest(path)
        if carried is not None:
            self._outcome.restore(carried)
        for tick in ticks:
            self._outcome.add(tick)
        if self._outcome.last is not None:
            self._before = rename_operators(self._outcome.last, earlier_names(path.parent))

    def carry_out(self, lock: Lock) -> dict[str, Any]:
        with ExitStack() as ending_with:
            engine = self._start(lock, ending_with)
            feeding = self._feeding()
            if feeding is not None:
                feeding.start()
                ending_with.callback(feeding.stop)
            ending = self._loop(engine, feeding)
        if feeding is not None and feeding.error is not None:
            raise feeding.error
        return self._result(engine, ending)

    def _start(self, lock: Lock, ending_with: ExitStack) -> SparkEngine:
        """Start Spark, then operators and the pool of replicas side by side."""
        say, began = self._watch.say, time.monotonic()
        say("starting Spark")
        session = self._session(lock, ending_with)
        spark_s = time.monotonic() - began
        replicas, number = min(self._room, MAX_WARM), len(self._prepared.pipeline.operators)
        of = "operator" if number == 1 else "operators"
        say(f"starting {number} {of} and a pool of {replicas} replicas")
        pool = BackgroundCall(lambda: start_workers(session, replicas, self._layout.run / "warm"))
        pool.start()
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
        hush_logging()
        modules = BackgroundCall(lambda: modules_of(pipeline.operators.values()))
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
        write_list(preload_list(log), modules.result())
        return session

    @property
    def _master(self) -> Master:
        return self._prepared.master or Master(cores=self._prepared.most_replicas)

    @property
    def _room(self) -> int:
        """Tasks that may run at once at the start."""
        return self._master.cores * self._first_executors()

    def _engine(self, session: SparkSession) -> SparkEngine:
        prepared = self._prepared
        return SparkEngine(
            session,
            prepared.pipeline,
            self._layout,
            pace=BatchTiming(
                batch_s=prepared.spec.batch_s,
                min_interval_s=min_interval_for(prepared.spec.batch_s),
                window_s=prepared.window_s,
            ),
            initial=self._initial,
            begin_s=self._journal.start_s,
            executors=self._executors(session),
            retry_for_s=prepared.retry_for_s,
            say=self._watch.say,
            report=self._watch.report,
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

    @property
    def _initial(self) -> Mapping[str, int]:
        """Replicas at the start; a run that goes on has those that it had, if it still may."""
        if self._before is None:
            return self._prepared.initial
        operators = self._prepared.pipeline.operators
        return {
            name: operators[name].options.within_bounds(replicas)
            for name, replicas in self._before.status.requested.items()
            if name in operators
        }

    def _feeding(self) -> ProducerThreads | None:
        prepared = self._prepared
        if prepared.load is None:
            return None
        return ProducerThreads(prepared.pipeline, self._layout, prepared.load, prepared.spec.seed)

    def _loop(self, engine: SparkEngine, feeding: ProducerThreads | None) -> StopCondition:
        prepared, start_s = self._prepared, self._journal.start_s
        clock = run_clock(start_s)
        ending = StopCondition(engine, feeding, self._stop)
        level = engine.executors

        def look(snapshot: Snapshot | None) -> None:
            second = feeding.second if feeding is not None else clock()
            self._watch.look(
                RunProgress(
                    second=second,
                    duration_s=prepared.duration_s,
                    snapshot=snapshot,
                    offered_rate=offered_rate(snapshot, self._readers) if snapshot else None,
                    queues=engine.queues,
                    is_draining=ending.is_draining,
                    executors=(level.alive, level.requested) if level is not None else None,
                )
            )

        # with a workload it is over when all was offered and worked off
        length_s = prepared.duration_s if feeding is None else float("inf")
        self._stop.is_gentle = True
        for tick in run_loop(
            ObservedEngine(engine, ending, look),
            self._decider,
            LoopSchedule(duration_s=length_s, interval_s=prepared.interval_s, start_s=start_s),
            clock=clock,
            patience=Patience(),
            dry_run=prepared.spec.dry_run,
            stop=ending,
        ):
            self._note(tick)
        return ending

    def _note(self, tick: Tick) -> None:
        tick = add_spent(tick, self._before)
        self._journal.write(tick)
        self._outcome.add(tick)
        self._watch.tick(tick)
        bound_output(self._layout.log.with_suffix(".out"))

    def _result(self, engine: SparkEngine, ending: StopCondition) -> dict[str, Any]:
        prepared = self._prepared
        pipeline, load = prepared.pipeline, prepared.load
        shares = sum(feed.share for feed in pipeline.feeds.values())
        peak_rate = load.peak_rate * shares if load is not None else None
        figures = self._outcome.result(peak_rate)
        told = prepared.guards
        pauses = [s for s in (told.cooldown_s, told.cooldown_up_s, told.cooldown_down_s) if s]
        guards = {"cooldown_s": min(pauses, default=None)}
        length_s = max(prepared.interval_s, figures.get("seconds", 0.0))
        return {
            "spec": prepared.spec.to_json(),
            "numbers": dict(prepared.numbers),
            "ended": self._how(engine, ending),
            **figures,
            "rescales_possible": rescales_possible(length_s, prepared.interval_s, guards),
            "records": records(
                count_records(pipeline, self._layout.run / "topics"),
                figures.get("dropped_records", 0),
                read_accounts(pipeline, self._layout),
                is_drained=ending.is_drained,
                reducing=[
                    name
                    for name, operator in pipeline.operators.items()
                    if find_kind(operator.kind).reduces_rows
                ],
            ),
            "failed": dict(engine.failed),
        }

    def _how(self, engine: SparkEngine, ending: StopCondition) -> str:
        if engine.failed:
            return "failed"
        if self._stop.is_asked:
            return "stopped"
        return "finished" if ending.is_drained or self._prepared.load is None else "cut"
