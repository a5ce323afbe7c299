"""Shows a run: redrawn in place on a terminal, elsewhere one line per tick."""

import os
import sys
from types import TracebackType
from typing import Self, TextIO

from penstock.control.loop import Tick
from penstock.engines.events import Event, FailedEvent, RestartingEvent, SlowBatchEvent
from penstock.reports.event_text import describe_event
from penstock.reports.live_view import LiveView, decision_lines, event_lines, plain_line
from penstock.reports.progress import duration
from penstock.reports.terminal import can_redraw, terminal_size
from penstock.reports.text_area import SHOW_CURSOR, TextArea
from penstock.runs.observer import RunProgress, StopRequest

STOPPING = "stopping after the running batches; press Ctrl-C again to stop at once"
#: Events that are printed at once, not at the next tick.
_URGENT = (RestartingEvent, FailedEvent, SlowBatchEvent)


class Screen:
    """Shows a run on stderr, so that stdout stays free for its figures."""

    def __init__(
        self,
        live: LiveView,
        stop: StopRequest,
        stream: TextIO | None = None,
        *,
        plain: bool = False,
    ) -> None:
        self._live, self._stop = live, stop
        self._stream = stream or sys.stderr
        self.is_redrawn = can_redraw(self._stream) and not plain
        self._area = TextArea(self._stream)
        self._progress: RunProgress | None = None

    # --- the observer of a run

    def say(self, text: str) -> None:
        """Print a text above the drawing."""
        self._area.wipe()
        print(text, file=self._stream, flush=True)

    def show_progress(self, progress: RunProgress) -> None:
        """Draw the current progress."""
        self._progress = progress
        self._live.show_progress(progress)
        if self.is_redrawn:
            self._draw()

    def tick(self, tick: Tick) -> None:
        """Show a tick."""
        self._live.tick(tick)
        if self.is_redrawn:
            self._draw()
            return
        # in the order of time: events come before the tick
        lines = [*event_lines(tick), plain_line(tick, self._progress), *decision_lines(tick)]
        print("\n".join(lines), file=self._stream, flush=True)

    def report(self, event: Event) -> None:
        """Print an urgent event at once."""
        if isinstance(event, _URGENT):
            self.say(f"  {duration(event.at):>6}  {describe_event(event)}")

    # --- drawing

    def _draw(self) -> None:
        self._live.notice = STOPPING if self._stop.is_asked else ""
        size = terminal_size(self._stream)
        self._area.draw(self._live.lines(size.columns, size.lines))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_redrawn:
            self._area.close()


def restore(stream: TextIO | None = None) -> None:
    """Show the cursor of the terminal again; safe in a signal handler."""
    stream = stream or sys.stderr
    if can_redraw(stream):
        os.write(stream.fileno(), f"{SHOW_CURSOR}\n".encode())
