"""Executes runs on Spark, one or several: shown by a view, stopped by signals."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol

from penstock.errors import InputError, PenstockError, SignalInterrupt
from penstock.runs.observer import RunObserver, StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RESULT, default_place, read_result
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec, read_spec

_CODES = {"finished": 0, "cut": 0}
#: Added to the number of a signal that stopped a run.
_SIGNALLED = 128


class RunOutcome(NamedTuple):
    """The result of a run, and the exit code of a process that did nothing else."""

    result: RunResult
    code: int
    #: Whether a signal stopped it.
    is_stopped: bool = False


class RunView(Protocol):
    """Shows one run."""

    def show_finished(self, directory: Path, changed: str) -> None:
        """The directory holds a run that is already finished.

        `changed` is the file of its pipeline, if it was changed since; else empty.
        """

    def watch(
        self,
        prepared: PreparedSparkRun,
        directory: Path,
        stop: StopRequest,
        options: LaunchOptions,
    ) -> AbstractContextManager[RunObserver]:
        """Show the run until the end of the context."""

    def show_stopping(self) -> None:
        """The run stops at the end of the batch; called in a signal handler."""

    def abort(self) -> None:
        """The process ends at once; called in a signal handler."""

    def show_end(self, prepared: PreparedSparkRun, directory: Path, result: RunResult) -> None:
        """The run is over."""


class ExecutedRuns(NamedTuple):
    """Runs that have ended, by policy, and the directory with theirs; a single run is ""."""

    outcomes: dict[str, RunOutcome]
    directory: Path

    @property
    def code(self) -> int:
        """The exit code of a process that did nothing else."""
        return max(outcome.code for outcome in self.outcomes.values())


def run_spec(
    spec: SparkSpec,
    view: RunView,
    directory: Path | None = None,
    options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
) -> ExecutedRuns:
    """Run a spec on Spark, or resume the run in the directory; default: `runs/NAME-TIME`."""
    prepared = prepare_spark_run(spec)
    place = directory or default_directory(prepared, spec.policy)
    return ExecutedRuns({"": execute(prepared, place, view, options)}, place)


def resume_run(
    directory: Path,
    view: RunView,
    options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
) -> ExecutedRuns:
    """Resume the run in a directory, with the spec that it was started with."""
    return run_spec(read_spec(directory), view, directory, options)


def compare_policies(
    spec: SparkSpec,
    policies: Sequence[str],
    make_view: Callable[[str], RunView],
    directory: Path | None = None,
) -> ExecutedRuns:
    """Run a spec under one policy after the other; `make_view` gets the prefix of messages."""
    runs = prepare_policies(spec, policies)
    first = next(iter(runs.values()), None)
    if first is None:
        raise InputError("--compare", "names no policy", "see penstock policies")
    place = directory or default_directory(first, "compare")
    return ExecutedRuns(execute_all(runs, place, make_view), place)


def execute(
    prepared: PreparedSparkRun,
    directory: Path,
    view: RunView,
    options: LaunchOptions = LaunchOptions(),  # noqa: B008  (immutable)
    stop: StopRequest | None = None,
) -> RunOutcome:
    """Run what is prepared, or continue the run in the directory unless it has finished."""
    _check_options(prepared, options)
    # not before everything is checked: it takes a second to load
    from penstock.runs.spark_run import run_on_spark  # noqa: PLC0415

    stop = stop or StopRequest()
    # a run without an end continues with the rows that came after it was drained
    has_end = math.isfinite(prepared.duration_s) and not options.available_now
    finished = _finished_result(prepared.spec, directory) if has_end else None
    if finished is not None:
        view.show_finished(directory, _changed_file(prepared.spec, directory))
        return RunOutcome(finished, exit_code(finished))
    with (
        view.watch(prepared, directory, stop, options) as observer,
        stop_on_signals(stop, view) as signals,
    ):
        try:
            result = run_on_spark(prepared, directory, observer, stop, options)
        except PenstockError:
            if signals and not stop.is_gentle:  # the signal broke off a call to Spark
                raise SignalInterrupt(signals[-1]) from None
            raise
    view.show_end(prepared, directory, result)
    if not signals:
        if options.standby and result.spark is not None and result.spark.ended == "stopped":
            # its other process was asked to stop: nobody shall start this one again either
            code = _SIGNALLED + signal.SIGTERM
            return RunOutcome(result, 1 if result.has_failed else code, is_stopped=True)
        return RunOutcome(result, exit_code(result))
    # a signal hides neither a failure nor lost records
    code = 1 if result.has_failed else _SIGNALLED + signals[-1]
    return RunOutcome(result, code, is_stopped=True)


def _check_options(prepared: PreparedSparkRun, options: LaunchOptions) -> None:
    if options.available_now and prepared.load is not None:
        problem = f"{prepared.pipeline.name} produces its rows, and there are none before it runs"
        raise InputError("--available-now", problem, "use it with @ingest or external topics")
    if options.session is not None and prepared.master is not None:
        problem = "the session that is given has a master already"
        raise InputError("--master", problem, "leave it out")


def execute_all(
    runs: Mapping[str, PreparedSparkRun], directory: Path, make_view: Callable[[str], RunView]
) -> dict[str, RunOutcome]:
    """Run the same arrivals under one policy after the other, until a signal stops one."""
    outcomes: dict[str, RunOutcome] = {}
    for number, (name, prepared) in enumerate(runs.items(), start=1):
        view = make_view(f"{number} of {len(runs)}: ")
        outcomes[name] = execute(prepared, directory / name, view)
        if outcomes[name].is_stopped:
            break
    return outcomes


def exit_code(result: RunResult) -> int:
    """Return 0, or 1 for a run that failed, lost records or did not run on Spark at all."""
    if result.spark is None or result.has_failed:
        return 1
    return _CODES.get(result.spark.ended, 1)


def default_directory(prepared: PreparedSparkRun, policy: str) -> Path:
    """Return the directory of a run by default, named after pipeline, workload and policy."""
    load = (prepared.workload,) if prepared.workload else ()
    now = time.strftime("%Y%m%d-%H%M%S")
    return default_place((prepared.spec.pipeline, *load, policy), now, Path("runs"))


def prepare_policies(spec: SparkSpec, policies: Sequence[str]) -> dict[str, PreparedSparkRun]:
    """Prepare a run for each policy: a mistake in the last is found before the first begins."""
    runs = {name: prepare_spark_run(replace(spec, policy=name)) for name in policies}
    if any(not math.isfinite(prepared.duration_s) for prepared in runs.values()):
        problem = f"{spec.pipeline} produces no rows, so the first run would never end"
        raise InputError("--compare", problem, "bound each run with --minutes N")
    return runs


def _finished_result(spec: SparkSpec, directory: Path) -> RunResult | None:
    """Return the result of a run with the same spec that has finished."""
    try:
        result = read_result(directory / RESULT)
    except InputError as error:
        hint = "remove it: the run resumes and computes its figures again"
        problem = f"is empty or damaged: {error.problem}"
        raise InputError("", problem, hint, str(directory / RESULT)) from None
    if result is None or result.spark is None or result.spark.ended != "finished":
        return None
    return result if result.spec == spec.to_json() else None


def _changed_file(spec: SparkSpec, directory: Path) -> str:
    """Return the file of the pipeline if it was written after the run had finished."""
    path = Path(spec.pipeline)
    is_newer = path.is_file() and path.stat().st_mtime > (directory / RESULT).stat().st_mtime
    return spec.pipeline if is_newer else ""


@contextmanager
def stop_on_signals(stop: StopRequest, view: RunView) -> Iterator[list[int]]:
    """Let Ctrl-C, or TERM, stop the run at the end of a batch; a second one ends the process.

    Yields the signals that came. Before records are on their way there is no batch to finish,
    and the first signal stops at once.
    """
    from penstock.engines.spark.cluster.session import kill_session  # noqa: PLC0415  (loads Spark)

    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals  # Python delivers signals to the main thread only
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if signals:
            kill_session()
            view.abort()
            os._exit(_SIGNALLED + number)
        signals.append(number)
        if not stop.is_gentle:
            raise SignalInterrupt(number)
        stop.is_asked = True
        view.show_stopping()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
