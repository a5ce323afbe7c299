"""Lays out text for a terminal: wrapped texts, and one line per parameter."""

import shutil
import textwrap
from typing import Any

from penstock.core.params import ParamDescription

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


def param_line(param: ParamDescription, width: int) -> str:
    """Return the line of a parameter; its description starts at the column `width`."""
    notes = "; ".join(part for part in (param.spec.unit, param.spec.bounds) if part)
    has_default = param.default is not None and param.default not in ("", {})
    value = f"{param.name}={_default(param.default)}" if has_default else param.name
    return hang(f"  {value}", f"{param.spec.doc}{f' ({notes})' if notes else ''}", width)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
