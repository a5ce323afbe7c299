"""Shows a run to a Python program: in a notebook, on a terminal, or not at all."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.control.loop import Tick
from penstock.engines.events import Event
from penstock.reports.event_text import describe_event
from penstock.reports.live_view import LiveView
from penstock.reports.run_statement import start_statement
from penstock.reports.run_view import ScreenView, title
from penstock.runs.observer import RunObserver, RunProgress, StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.result import RunResult
from penstock.runs.spark_preparation import PreparedSparkRun

#: Seconds between two drawings, and the size of a drawing.
_DRAW_S, _WIDTH, _HEIGHT = 1.0, 110, 30


class LibraryView(ScreenView):
    """Shows a run on stderr; a second Ctrl-C raises an error instead of ending the process."""

    def abort(self) -> None:
        """Restore the terminal and interrupt the program."""
        super().abort()
        raise KeyboardInterrupt


class SilentView(LibraryView):
    """Shows nothing."""

    @contextmanager
    def watch(
        self,
        prepared: PreparedSparkRun,  # noqa: ARG002
        directory: Path,  # noqa: ARG002
        stop: StopRequest,  # noqa: ARG002
        options: LaunchOptions,  # noqa: ARG002
    ) -> Iterator[RunObserver]:
        """Observe the run without showing it."""
        yield _NoObserver()

    def show_finished(self, directory: Path, changed: str) -> None:
        """Nothing."""

    def show_stopping(self) -> None:
        """Nothing."""

    def show_end(self, prepared: PreparedSparkRun, directory: Path, result: RunResult) -> None:
        """Nothing: the caller gets the result, or an error."""


class NotebookView(SilentView):
    """Shows a run below the cell of a notebook, redrawn in place."""

    @contextmanager
    def watch(
        self,
        prepared: PreparedSparkRun,
        directory: Path,
        stop: StopRequest,  # noqa: ARG002
        options: LaunchOptions,
    ) -> Iterator[RunObserver]:
        """Show the run until the end of the context."""
        cell = _CellDisplay()
        cell.show(start_statement(prepared, directory, available_now=options.available_now))
        observer = _CellObserver(cell, LiveView(title(prepared), prepared.objective_s))
        yield observer
        observer.draw()


class _NoObserver:
    """Ignores the progress of a run."""

    def say(self, text: str) -> None:
        pass

    def show_progress(self, progress: RunProgress) -> None:
        pass

    def tick(self, tick: Tick) -> None:
        pass

    def report(self, event: Event) -> None:
        pass


class _CellObserver:
    """Draws the live view of a run into a cell, at most once a second."""

    def __init__(self, cell: "_CellDisplay", live: LiveView) -> None:
        self._cell, self._live = cell, live
        self._message, self._drawn_at = "", 0.0

    def say(self, text: str) -> None:
        self._message = text
        self.draw()

    def show_progress(self, progress: RunProgress) -> None:
        self._live.show_progress(progress)
        if time.monotonic() - self._drawn_at >= _DRAW_S:
            self.draw()

    def tick(self, tick: Tick) -> None:
        self._live.tick(tick)
        self.draw()

    def report(self, event: Event) -> None:
        self.say(describe_event(event))

    def draw(self) -> None:
        """Draw now."""
        self._drawn_at = time.monotonic()
        self._cell.show([*self._live.lines(_WIDTH, _HEIGHT), "", self._message])


class _CellDisplay:
    """A place below a cell whose content is replaced."""

    def __init__(self) -> None:
        self._display = import_module("IPython.display")
        self._handle: Any = None

    def show(self, lines: list[str]) -> None:
        """Replace what is shown."""
        text = "\n".join(lines).rstrip()
        content = self._display.HTML(f"<pre>{escape(text)}</pre>")
        if self._handle is None:
            self._handle = self._display.display(content, display_id=True)
        else:
            self._handle.update(content)


def is_notebook() -> bool:
    """Whether this program runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
