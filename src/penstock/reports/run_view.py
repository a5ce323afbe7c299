"""Shows a run on Spark on stderr from its start to its end, and draws its picture."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.reports.live_view import LiveView
from penstock.reports.run_statement import start_statement
from penstock.reports.screen import STOPPING, Screen, restore
from penstock.runs.journal import read_journal
from penstock.runs.observer import RunObserver, StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.result import RunResult
from penstock.runs.run_directory import JOURNAL
from penstock.runs.spark_preparation import PreparedSparkRun

#: The picture of a run, in its directory.
PICTURE = "run.svg"


class ScreenView:
    """Shows a run on stderr; see `penstock.runs.execution.RunView`."""

    def __init__(self, *, plain: bool = False, prefix: str = "") -> None:
        """Make a view; `plain` prints one line per tick, `prefix` precedes the title."""
        self._plain, self._prefix = plain, prefix
        self._is_redrawn = False

    def show_finished(self, directory: Path, changed: str) -> None:
        """Print that the run is already finished, and how to run a changed pipeline."""
        print(f"{directory} is already finished; this is its result", file=sys.stderr)
        if changed:
            problem = f"{changed} was changed after it, and the change did not run"
            print(f"warning: {problem}; run it with another --out", file=sys.stderr)

    @contextmanager
    def watch(
        self,
        prepared: PreparedSparkRun,
        directory: Path,
        stop: StopRequest,
        options: LaunchOptions,
    ) -> Iterator[RunObserver]:
        """Show the run until the end of the context."""
        lines = start_statement(prepared, directory, available_now=options.available_now)
        print("\n".join(lines), file=sys.stderr, flush=True)
        live = LiveView(self._prefix + title(prepared), prepared.objective_s)
        with Screen(live, stop, plain=self._plain) as screen:
            self._is_redrawn = screen.is_redrawn
            yield screen

    def show_stopping(self) -> None:
        """Print that the run stops, unless the screen shows it."""
        if not self._is_redrawn:
            # not through the stream: the signal may have interrupted a write
            os.write(2, f"{STOPPING}\n".encode())

    def abort(self) -> None:
        """Restore the terminal."""
        restore()

    def show_end(self, prepared: PreparedSparkRun, directory: Path, result: RunResult) -> None:
        """Draw the picture of the run and print its errors."""
        _draw(directory, title(prepared))
        if result.spark is None:
            return
        for name, text in result.spark.failed.items():
            problem = text if text.startswith(name) else f"{name} failed: {text}"
            print(f"error: {problem}", file=sys.stderr)
        lost = result.spark.records.lost
        if lost:
            print(f"error: {lost:,} records were lost: no batch read them", file=sys.stderr)


def title(prepared: PreparedSparkRun) -> str:
    """Return the title of a run: pipeline, workload and policy."""
    spec = prepared.spec
    load = f" under {prepared.workload}" if prepared.workload else ""
    faster = f" x {spec.speed_up:g}" if spec.speed_up != 1 else ""
    dry = ", dry run" if spec.dry_run else ""
    alone = "" if spec.is_controlled else ", no controller"
    return f"{prepared.pipeline.name}{load}{faster}, {prepared.policy.name}{alone}{dry}"


def _draw(directory: Path, name: str) -> None:
    # imported after the run: it takes a second
    from penstock.reports.run_picture import draw_run  # noqa: PLC0415

    # only the last hours of a long run: all of it would take minutes
    journal = read_journal(directory / JOURNAL, newest=2)
    if any(tick.snapshot is not None for tick in journal.ticks):
        draw_run(journal, directory / PICTURE, name)
