"""Runs pipelines on Spark from Python, in this thread or in the background."""

import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from penstock.api.options import RunOptions, run_objects, spec_fields
from penstock.api.run_handle import Run
from penstock.core.policy import Policy
from penstock.errors import InputError, RunError
from penstock.pipelines.pipeline import Pipeline
from penstock.reports.notebook_view import LibraryView, NotebookView, SilentView, is_notebook
from penstock.runs.execution import RunOutcome, RunView, default_directory, execute
from penstock.runs.observer import StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.run_directory import SPEC_FILE, read_run
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec, default_policy
from penstock.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A process has one Spark context, so it carries out one run at a time.
_one_run = threading.Lock()
#: The exit code of a process that Ctrl-C ended.
INTERRUPTED = 130


def run(
    pipeline: Pipeline | str | Path,
    workload: str | Workload | None = None,
    policy: str | Policy | None = None,
    *,
    out: str | Path | None = None,
    spark: "SparkSession | None" = None,
    background: bool = False,
    available_now: bool = False,
    progress: bool | None = None,
    allow_removal: Iterable[str] = (),
    **options: Unpack[RunOptions],
) -> Run:
    """Run a pipeline on Spark and scale it by a policy; return when it has ended.

    `pipeline` is a `Pipeline`, the name of a demo or query, or a file. A pipeline that produces
    its rows follows `workload`; any other runs until it is stopped, for `minutes`, or with
    `available_now` until everything is processed that was there at its start. `out` is the run
    directory; the same directory again resumes the run.

    `spark` is an existing session, which is used and left alone; replicas never exceed its task
    slots. `background` returns at once: `Run.wait` and `Run.stop` end it. `progress` prints what
    happens to stderr; by default on a terminal and in a notebook. Options are those of
    `penstock run`.

        run = penstock.run("images", "pulsar", "ds2", speed_up=20)
        run.result.latency_s.p95
        live = orders.run(policy="ds2", out="runs/orders", background=True)
        live.ticks.to_pandas()
        live.stop()

    Raises `InputError` for a mistake before anything starts, and `RunError` if an operator failed
    or records were lost. Ctrl-C stops the run gently, then raises `KeyboardInterrupt`.
    """
    if policy is None:
        policy = default_policy(options.get("controller"))
    fields = spec_fields(workload, policy, options)
    spec = SparkSpec.from_json({"pipeline": _name_of(pipeline), **fields})
    objects = run_objects(workload, policy)
    if isinstance(pipeline, Pipeline):
        objects = replace(objects, pipeline=pipeline)
    launch = LaunchOptions(
        session=spark, available_now=available_now, allow_removal=tuple(allow_removal)
    )
    prepared = prepare_spark_run(spec, objects, slots=_slots(spark))
    directory = Path(out) if out is not None else default_directory(prepared, spec.policy)
    execution = BackgroundExecution(prepared, directory, launch, _view(progress))
    if background:
        execution.start()
    else:
        execution.carry_out()
    return Run(directory, lambda: read_run(directory), execution)


class BackgroundExecution:
    """One run of this process, in the thread that calls `carry_out` or in a new one."""

    def __init__(
        self, prepared: PreparedSparkRun, directory: Path, options: LaunchOptions, view: RunView
    ) -> None:
        self._prepared, self._directory = prepared, directory
        self._options, self._view = options, view
        self._stop = StopRequest()
        self._thread = threading.Thread(
            target=self._carry_out_in_thread, name="penstock-run", daemon=True
        )
        self._error: BaseException | None = None

    def carry_out(self) -> None:
        """Run it to its end; raise what went wrong."""
        if not _one_run.acquire(blocking=False):
            problem = "this process carries out another run, and has one Spark context"
            raise InputError("run", problem, "wait for it or stop it, or use another process")
        try:
            outcome = execute(
                self._prepared, self._directory, self._view, self._options, self._stop
            )
        finally:
            _one_run.release()
        self._raise_failure(outcome)

    def start(self) -> None:
        """Run it in the background; return when its directory can be read."""
        self._thread.start()
        while self.is_alive and not (self._directory / SPEC_FILE).is_file():
            self._thread.join(0.05)
        if not self.is_alive:
            self.wait(None)

    @property
    def is_alive(self) -> bool:
        """Whether the thread of a run in the background has not ended."""
        return self._thread.is_alive()

    def request_stop(self) -> None:
        """Ask the run to stop after the running batches."""
        self._stop.is_asked = True

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end; False if it goes on. Raises the error that ended it, once."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return not self.is_alive

    def _carry_out_in_thread(self) -> None:
        try:
            self.carry_out()
        except BaseException as error:
            self._error = error

    def _raise_failure(self, outcome: RunOutcome) -> None:
        spark = outcome.result.spark
        if not outcome.result.has_failed:
            if outcome.is_stopped:
                raise KeyboardInterrupt if outcome.code == INTERRUPTED else SystemExit(outcome.code)
            if outcome.code == 0 or self._stop.is_asked:
                return
        if spark is None:
            return
        problems = [*spark.failed.values()]
        if spark.records.lost:
            problems.append(f"{spark.records.lost:,} records were lost: no batch read them")
        text = "\n".join(problems) or f"it ended: {spark.ended}"
        raise RunError(f"{self._directory}: {text}")


def _name_of(pipeline: Pipeline | str | Path) -> str:
    return pipeline.name if isinstance(pipeline, Pipeline) else str(pipeline)


def _slots(spark: "SparkSession | None") -> int | None:
    if spark is None:
        return None
    from penstock.engines.spark.cluster.session import task_slots  # noqa: PLC0415  (loads Spark)

    return task_slots(spark)


def _view(progress: bool | None) -> RunView:
    if progress is False:
        return SilentView()
    if is_notebook():
        return NotebookView()
    is_terminal = sys.stderr.isatty()
    return LibraryView(plain=not is_terminal) if progress or is_terminal else SilentView()
