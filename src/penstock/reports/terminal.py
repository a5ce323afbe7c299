"""What a terminal can do: redraw lines, bold text, its size. Honours TERM, NO_COLOR and COLUMNS."""

import os
from typing import TextIO

#: The size where a stream is no terminal, or does not know its size.
_COLUMNS, _LINES = 100, 40


def can_redraw(stream: TextIO) -> bool:
    """Whether lines can be drawn over: a terminal that is not `TERM=dumb`."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_styles(stream: TextIO) -> bool:
    """Whether text may be bold or coloured: a terminal, unless NO_COLOR is set and not empty."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the size of a terminal; COLUMNS and LINES take precedence, as in other programs."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    columns = _positive("COLUMNS") or size.columns or _COLUMNS
    lines = _positive("LINES") or size.lines or _LINES
    return os.terminal_size((columns, lines))


def _positive(variable: str) -> int:
    """Return the number in an environment variable; 0 if there is no positive one."""
    try:
        return max(0, int(os.environ.get(variable, "")))
    except ValueError:
        return 0
