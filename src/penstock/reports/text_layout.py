"""Wraps text to the width of the terminal."""

import shutil
import textwrap

_MAX_WIDTH = 100


def text_width() -> int:
    """Return the columns of the terminal; 80 if there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, _MAX_WIDTH)


def hang(label: str, text: str, indent: int) -> str:
    """Write a label and a text with a hanging indent.

    >>> print(hang("  target=0.7", "share of CPU to aim for", 15))
      target=0.7   share of CPU to aim for
    """
    head = f"{label:<{indent - 1}} "
    width = max(text_width() - len(head), 20)
    lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return f"\n{' ' * indent}".join([head + lines[0], *lines[1:]]).rstrip()
