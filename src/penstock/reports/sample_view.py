"""Live views of samples: redrawn in place on a terminal, elsewhere one line each."""

import sys
from abc import ABC, abstractmethod
from typing import Generic, Self, TextIO, TypeVar

from penstock.reports.progress import duration
from penstock.reports.terminal import can_redraw, terminal_size
from penstock.reports.text_area import TextArea

Sample = TypeVar("Sample")
#: Columns of the progress bar.
_BAR = 20


class SampleView(ABC, Generic[Sample]):
    """Shows samples on stderr. Use it as a context, so that the cursor comes back."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._area = TextArea(self._stream) if can_redraw(self._stream) else None

    @abstractmethod
    def lines(self, sample: Sample) -> list[str]:
        """Draw a sample."""

    @abstractmethod
    def line(self, sample: Sample) -> str:
        """Return a sample as one line, for a log."""

    def show(self, sample: Sample) -> None:
        """Show the latest sample."""
        lines = self.lines(sample)
        if self._area is None:
            print(self.line(sample), file=self._stream, flush=True)
            return
        size = terminal_size(self._stream)
        self._area.draw([line[: size.columns - 1] for line in lines[: size.lines - 1]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._area is not None:
            self._area.close()


def progress_bar(at_s: float, seconds: float) -> str:
    """Return how much of a time has passed.

    >>> progress_bar(15, 60)
    '[#####...............] 0:15 of 1:00'
    """
    full = round(_BAR * min(1.0, at_s / seconds))
    return f"[{'#' * full}{'.' * (_BAR - full)}] {duration(at_s)} of {duration(seconds)}"
