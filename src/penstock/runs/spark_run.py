"""One run on Spark: a pipeline, its producers and the loop that scales it, in one directory.

The same directory given again continues the run. Whenever it was killed, no record is lost and none
is written twice.
"""

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from penstock.control.clock import run_clock
from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.snapshot import Snapshot
from penstock.engines.events import ControlEvent
from penstock.engines.spark.cluster.masters import check_java
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.files.lock import Lock
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.control_file import ControlFile
from penstock.runs.journal import JournalWriter, read_newest, read_recent
from penstock.runs.journal_parts import Limits
from penstock.runs.observer import (
    AvailableInput,
    ObservedEngine,
    RunObserver,
    RunProgress,
    StopCondition,
    StopRequest,
)
from penstock.runs.operator_totals import read_accounts
from penstock.runs.pipeline_changes import check_description, earlier_names
from penstock.runs.preparation import LaunchOptions
from penstock.runs.producers import ProducerThreads
from penstock.runs.record_counts import count_records, readers_of
from penstock.runs.replay import recall
from penstock.runs.result import RunResult
from penstock.runs.result_parts import RunScores
from penstock.runs.run_directory import JOURNAL, SPEC_FILE, finish_run, open_run
from penstock.runs.run_lock import (
    acquire_soon,
    remove_empty_run,
    run_lock,
    spark_errors,
)
from penstock.runs.run_stop import stop_requests
from penstock.runs.scores import rescales_possible
from penstock.runs.spark_launch import SparkLauncher
from penstock.runs.spark_preparation import PreparedSparkRun
from penstock.runs.spark_result import RecordBalance, SparkResult
from penstock.runs.spark_scores import SparkScores, offered_rate, records
from penstock.runs.standby import Standby
from penstock.runs.tick_json import add_spent, rename_operators

_LOG = logging.getLogger(__name__)
#: The JVM's output file is emptied beyond this; its content stays in a second file until then.
MAX_OUTPUT_BYTES = 10_000_000


def run_on_spark(
    prepared: PreparedSparkRun,
    directory: Path,
    watch: RunObserver,
    stop: StopRequest,
    options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
) -> RunResult:
    """Run it to its end, or continue the run in the directory; return its result.

    A signal handler or another thread may ask it to stop. A standby waits until no other process
    runs there; if that one ended by itself, its result is returned.
    """
    check_java()
    standby = Standby(directory) if options.standby else None
    with run_lock(directory, watch.say, standby.acquire if standby else acquire_soon) as lock:
        if standby and standby.ended is not None:
            return standby.ended
        is_new = not (directory / SPEC_FILE).is_file()
        _LOG.info("run %s in %s", "starts" if is_new else "resumes", directory)
        if not is_new:  # before anything of the run is touched
            for note in check_description(prepared.pipeline, directory, options.allow_removal):
                watch.say(note)
        try:
            limits = Limits.of(prepared.spec.journal_mb)
            header, spec = prepared.header(), prepared.spec.to_json()
            with (
                open_run(directory, spec, header, limits=limits) as journal,
                stop_requests(directory, stop),
            ):
                if is_new:
                    check_description(prepared.pipeline, directory)
                with spark_errors(directory):
                    run = _Run(prepared, directory, watch, stop, journal, options)
                    result = run.carry_out(lock)
        except InputError:
            # some mistakes show when Spark looks at them; leave no half a run
            if is_new and not remove_empty_run(directory):
                watch.say(f"{directory} holds data and is kept")
            raise
        finish_run(directory, result)
        _LOG.info(
            "run in %s ended: %s", directory, result.spark.ended if result.spark else "finished"
        )
    return result


class _Run:
    """Connects the parts of one run: engine, producers, loop, journal and scores."""

    def __init__(
        self,
        prepared: PreparedSparkRun,
        directory: Path,
        watch: RunObserver,
        stop: StopRequest,
        journal: JournalWriter,
        options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
    ) -> None:
        self._prepared, self._watch, self._stop, self._journal = prepared, watch, stop, journal
        self._options = options
        self._layout = RunLayout(directory.resolve())
        self._readers = readers_of(prepared.pipeline)
        self._outcome = SparkScores(prepared.objective_s, self._readers)
        self._decider = prepared.decider()
        #: The last tick before a resumption.
        self._before: Tick | None = None
        self._journaled_requests = 0
        self._recall(directory / JOURNAL)
        journal.carry = self._outcome.to_json

    def _recall(self, path: Path) -> None:
        """Restore the memory of a resumed run."""
        if not self._journal.start_s:
            return
        operators = self._prepared.pipeline.operators
        scaled = [name for name, operator in operators.items() if operator.scales]
        recall(self._watch_requests(read_recent(path)), self._decider, scaled)
        carried, ticks = read_newest(path)
        if carried is not None:
            self._outcome.restore(carried)
        for tick in ticks:
            self._outcome.add(tick)
        if self._outcome.last is not None:
            self._before = rename_operators(self._outcome.last, earlier_names(path.parent))

    def _watch_requests(self, ticks: Iterator[Tick]) -> Iterator[Tick]:
        """Note the last request of a person that the journal has."""
        for tick in ticks:
            for event in tick.status.events:
                if isinstance(event, ControlEvent):
                    self._journaled_requests = max(self._journaled_requests, event.number)
            yield tick

    def carry_out(self, lock: Lock) -> RunResult:
        with ExitStack() as ending_with:
            launcher = SparkLauncher(
                self._prepared,
                self._layout,
                self._watch,
                self._initial,
                self._journal.start_s,
                self._options,
            )
            engine = launcher.start(lock, ending_with)
            feeding = self._feeding()
            if feeding is not None:
                feeding.start()
                ending_with.callback(feeding.stop)
            ending = self._loop(engine, feeding)
        if feeding is not None and feeding.error is not None:
            raise feeding.error
        return self._result(engine, ending)

    @property
    def _initial(self) -> Mapping[str, int]:
        """Replicas at the start; a resumed run keeps its own, within the present bounds."""
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
        is_bounded = self._options.available_now
        ending = StopCondition(
            engine, AvailableInput(engine) if is_bounded else feeding, self._stop
        )
        level = engine.executors

        def show(snapshot: Snapshot | None) -> None:
            second = feeding.second if feeding is not None else clock()
            self._watch.show_progress(
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
            ObservedEngine(engine, ending, show),
            self._decider,
            LoopSchedule(duration_s=length_s, interval_s=prepared.interval_s, start_s=start_s),
            clock=clock,
            patience=Patience(),
            dry_run=prepared.spec.dry_run,
            observes_only=not prepared.spec.is_controlled,
            stop=ending,
            controls=ControlFile(self._layout.run, self._journaled_requests),
        ):
            self._note(tick)
        return ending

    def _note(self, tick: Tick) -> None:
        tick = add_spent(tick, self._before)
        self._journal.write(tick)
        self._outcome.add(tick)
        self._watch.tick(tick)
        bound_output(self._layout.log.with_suffix(".out"))

    def _result(self, engine: SparkEngine, ending: StopCondition) -> RunResult:
        prepared, pipeline = self._prepared, self._prepared.pipeline
        shares = sum(feed.share for feed in pipeline.feeds.values())
        peak_rate = prepared.load.peak_rate * shares if prepared.load is not None else None
        scores, measures = self._outcome.scores(), self._outcome.measures(peak_rate)
        length_s = max(prepared.interval_s, measures.seconds)
        return RunResult(
            spec=prepared.spec.to_json(),
            scores=scores,
            rescales_possible=rescales_possible(length_s, prepared.interval_s, prepared.guards),
            spark=SparkResult(
                ended=self._how(engine, ending),
                build_args=dict(prepared.build_args),
                measures=measures,
                records=self._records(scores, is_drained=ending.is_drained),
                failed=dict(engine.operator_errors),
            ),
        )

    def _records(self, scores: RunScores | None, *, is_drained: bool) -> RecordBalance:
        operators = self._prepared.pipeline.operators.items()
        return records(
            count_records(self._prepared.pipeline, self._layout.run / "topics"),
            scores.dropped_records if scores is not None else 0,
            read_accounts(self._prepared.pipeline, self._layout),
            is_drained=is_drained,
            reducing=[
                name for name, operator in operators if find_kind(operator.kind).reduces_rows
            ],
        )

    def _how(self, engine: SparkEngine, ending: StopCondition) -> str:
        if engine.operator_errors:
            return "failed"
        if self._stop.is_asked:
            return "stopped"
        return "finished" if ending.is_drained or self._prepared.load is None else "cut"


def bound_output(path: Path, max_bytes: int = MAX_OUTPUT_BYTES) -> bool:
    """Empty the JVM's output file if it became too large; True if it did.

    Everything that functions print goes there, for weeks. The JVM appends to the file, so it can
    be emptied meanwhile; what is written at that moment may be lost.
    """
    try:
        if path.stat().st_size <= max_bytes:
            return False
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)
    except OSError:  # a full disk, or a file that is gone: no reason to end a run
        return False
    return True
