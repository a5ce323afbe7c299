"""A progress bar on stderr with the time left."""

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from penstock.core.progress import WorkProgress
from penstock.reports.terminal import can_redraw, terminal_size

_WIDTH = 30


class ProgressBar:
    """Redraws a bar on a terminal; elsewhere prints one line per 10 %.

    with ProgressBar("grid") as bar:
        run_all(specs, out, jobs, bar.show)
    """

    def __init__(
        self,
        title: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        resumes: bool = True,
    ) -> None:
        self.title, self._stream, self._clock = title, stream or sys.stderr, clock
        self._resumes = resumes
        self._began_s = clock()
        self._tenths = 0
        #: The last progress shown.
        self.last = WorkProgress(total=0, kept=0, done=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the line; after an interrupt, say how to resume."""
        new = self.last.total - self.last.kept
        if can_redraw(self._stream) and new:
            print(file=self._stream)
        if kind is KeyboardInterrupt and self._resumes:
            print("interrupted; the same command resumes", file=self._stream)

    def show(self, progress: WorkProgress) -> None:
        """Show the progress."""
        self.last = progress
        done, new = progress.done, progress.total - progress.kept
        if done == 0:
            self._began_s, self._tenths = self._clock(), 0
            if progress.kept:
                stored = f"{progress.kept} of {progress.total} exist already"
                print(f"{self.title}: {stored}", file=self._stream)
        if not new:
            return
        if can_redraw(self._stream):
            full = _WIDTH * done // new
            bar = f"[{'#' * full}{'.' * (_WIDTH - full)}]"
            # a line that fills the last column would wrap, and could not be drawn over
            line = f"{self._line(done, new, bar)}  "[: terminal_size(self._stream).columns - 1]
            print(f"\r{line}", end="", file=self._stream, flush=True)
        elif done * 10 // new > self._tenths:
            self._tenths = done * 10 // new
            print(self._line(done, new), file=self._stream, flush=True)

    def _line(self, done: int, new: int, bar: str = "") -> str:
        elapsed_s = self._clock() - self._began_s
        parts = [f"{self.title}:", bar, f"{100 * done // new:3d} %, {done} of {new}"]
        if done == new:
            parts.append(f"in {duration(elapsed_s)}")
        elif done:
            parts.append(f"{duration(elapsed_s / done * (new - done))} left")
        return " ".join(part for part in parts if part)


def duration(seconds: float) -> str:
    """Write a duration.

    >>> duration(65), duration(3605)
    ('1:05', '1:00:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
