"""A run, live or finished: its figures, its tables, its pictures, and how to stop it."""

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.control.loop import Tick
from penstock.errors import InputError, NotReadyError
from penstock.files.lock import find_holder
from penstock.reports import result_text, spark_result_text
from penstock.reports.explanation import explain_run
from penstock.reports.run_html import run_html
from penstock.runs.journal import Journal
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, RunDirectory, read_run
from penstock.runs.run_stop import stop_run

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.runs.run_status import RunStatus

#: Seconds that a run may take to stop.
STOP_S = 120.0


class RunExecution(Protocol):
    """The thread of this process that carries out a run."""

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""

    def request_stop(self) -> None:
        """Ask the run to stop after the running batches."""

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end; False if it goes on. Raises the error that ended it."""


class Run:
    """One run, simulated or on Spark, live or finished.

    A run on Spark is its directory: everything here is read from there, so that a run of another
    process can be watched, too.
    """

    def __init__(
        self,
        directory: Path | None,
        read: Callable[[], RunDirectory],
        execution: RunExecution | None = None,
    ) -> None:
        """Use `penstock.open_run`, `penstock.simulate` or `Pipeline.run` to get one."""
        #: The run directory; None for a simulation that was kept in memory.
        self.directory = directory
        self._read, self._execution = read, execution

    # --- figures

    @property
    def spec(self) -> Mapping[str, Any]:
        """What was asked for: pipeline or query, workload, policy, parameters, guards, seed."""
        return self._read().spec

    @property
    def journal(self) -> Journal:
        """The header and all ticks, as the journal has them."""
        return self._read().journal

    @property
    def result(self) -> RunResult:
        """The figures of the finished run; `NotReadyError` while it lasts."""
        result = self._read().result
        if result is None:
            raise NotReadyError(
                f"{self._name} has not finished"
                "\nhint: run.wait() waits for its end; run.ticks has what was measured so far"
            )
        return result

    @property
    def ticks(self) -> "pa.Table":
        """An Arrow table with one row per tick: load, replicas, latency, records.

        Columns: `at_s`, `offered_per_s`, `replicas`, `requested`, `executors`, `latency_mean_s`,
        `latency_p95_s`, `offered_records`, `processed_records`, `dropped_records`,
        `backlog_records`, `applied`, `error`.
        """
        from penstock.reports.arrow_tables import ticks_table  # noqa: PLC0415

        return ticks_table(self._ticks)

    @property
    def operators(self) -> "pa.Table":
        """An Arrow table with one row per tick and operator: everything that was measured.

        Columns: `at_s`, `operator`, `running`, `requested`, `arrivals_per_s`, and the measures
        of `OperatorSnapshot`.
        """
        from penstock.reports.arrow_tables import operators_table  # noqa: PLC0415

        return operators_table(self._ticks)

    @property
    def decisions(self) -> "pa.Table":
        """An Arrow table with one row per decision and operator: wanted replicas and reasons.

        Columns: `at_s`, `operator`, `current`, `proposed` (by the policy), `wanted` (after the
        guards), `reason`, `formula`, `guards`, `applied`.
        """
        from penstock.reports.arrow_tables import decisions_table  # noqa: PLC0415

        return decisions_table(self._ticks)

    def rows(self, topic: str, last: int | None = None) -> "pa.Table":
        """Return the rows of a topic of a run on Spark: all that it keeps, or the `last` ones."""
        from penstock.runs.topic_inspection import read_rows  # noqa: PLC0415

        if self.directory is None:
            raise InputError("run", "has no directory: only runs on Spark have topics")
        return read_rows(self.directory, topic, last)

    def explain(self, at: float | None = None, operator: str | None = None) -> str:
        """Explain why replicas changed and why not: the whole run, or the tick nearest to `at`."""
        return "\n".join(explain_run(self._read(), operator, at))

    def plot(self, target: str | Path | None = None) -> "Picture":
        """Draw load, replicas, queues and latency over time; `target` is an .svg, .png or .pdf."""
        from penstock.reports.run_picture import draw_run  # noqa: PLC0415

        journal, text = self._read().journal, io.StringIO()
        if target is not None:
            draw_run(journal, Path(target), self._title)
        draw_run(journal, text, self._title)
        return Picture(text.getvalue())

    # --- life

    @property
    def is_running(self) -> bool:
        """Whether a process, this one or another, carries it out."""
        if self._execution is not None:
            return self._execution.is_alive
        return self.directory is not None and find_holder(self.directory / LOCK) is not None

    def status(self) -> "RunStatus":
        """Return the status of a run on Spark: health, operators, queues, restarts, disk."""
        from penstock.runs.run_status import read_status  # noqa: PLC0415

        if self.directory is None:
            raise InputError("run", "has no directory: only runs on Spark have a status")
        return read_status(self.directory)

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Stop the run after the running batches and wait for its end; nothing is lost."""
        if self._execution is not None:
            self._execution.request_stop()
            self.wait(timeout_s)
        elif self.directory is not None:
            stop_run(self.directory, timeout_s, lambda _: None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of a run of this process; False if it still runs after the time."""
        return self._execution is None or self._execution.wait(timeout_s)

    # --- inside

    @property
    def _ticks(self) -> tuple[Tick, ...]:
        return self._read().journal.ticks

    @property
    def _name(self) -> str:
        return str(self.directory) if self.directory is not None else "the run"

    @property
    def _title(self) -> str:
        spec = self._read().spec
        what = spec.get("pipeline") or spec.get("query") or self._name
        load = f" under {spec['workload']}" if spec.get("workload") else ""
        return f"{Path(str(what)).stem}{load}, {spec.get('policy')}"

    def __repr__(self) -> str:
        place = f" in {self.directory}" if self.directory is not None else ""
        recorded = self._read()
        lines = [f"{self._title}{place}"]
        if recorded.result is None:
            state = "running" if self.is_running else "not finished"
            return f"{lines[0]}: {state}, {len(recorded.journal.ticks)} ticks so far"
        return "\n".join([*lines, "", *self._figures(recorded.result)])

    def _figures(self, result: RunResult) -> Iterable[str]:
        if result.spark is None or self.directory is None:
            return result_text.report(result)
        return spark_result_text.report(result, self.directory)

    def _repr_html_(self) -> str:
        return run_html(self._read(), self._title, is_running=self.is_running)


class Picture:
    """A picture that a notebook shows."""

    def __init__(self, svg: str) -> None:
        #: The picture as SVG.
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def open_run(directory: str | Path) -> Run:
    """Open a run directory, live or finished, simulated or from Spark.

    `InputError` names what is missing or damaged.
    """
    place = Path(directory)
    read_run(place)  # a wrong path is an error here, not at the first use
    return Run(place, lambda: read_run(place))


def run_in_memory(recorded: RunDirectory) -> Run:
    """Return a run that has no directory."""
    return Run(None, lambda: replace(recorded))
