"""Lines on a terminal that are drawn over again and again."""

from collections.abc import Sequence
from typing import TextIO

from penstock.reports.terminal import has_styles

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_BELOW, _BOLD, _PLAIN = "\x1b[J", "\x1b[1m", "\x1b[0m"


class TextArea:
    """The last lines of a terminal; the first one is bold."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: Number of lines of the last drawing, which the next one overwrites.
        self._drawn = 0

    def draw(self, lines: Sequence[str]) -> None:
        """Draw lines over those of the last call; none may be wider than the terminal."""
        first = f"{_BOLD}{lines[0]}{_PLAIN}" if has_styles(self._stream) else lines[0]
        text = "\n".join([first, *lines[1:]])
        # one write, so that the picture never appears half drawn
        self._stream.write(f"{self._up()}{HIDE_CURSOR}{_BELOW}{text}\n")
        self._stream.flush()
        self._drawn = len(lines)

    def wipe(self) -> None:
        """Remove the drawing."""
        if self._drawn:
            self._stream.write(f"{self._up()}{_BELOW}")
            self._drawn = 0

    def close(self) -> None:
        """Leave the drawing, and show the cursor again."""
        self._stream.write(SHOW_CURSOR)
        self._stream.flush()

    def _up(self) -> str:
        return f"\r\x1b[{self._drawn}A" if self._drawn else "\r"
