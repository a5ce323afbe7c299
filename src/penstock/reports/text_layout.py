"""Lays text out for the width of a terminal: help texts, and lists of names with what they mean."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterator

#: A command with a remark behind it, as in examples.
_EXAMPLE = re.compile(r"(\s+\S.*?)\s{2,}(\S.*)")
_WIDEST = 100


def text_width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)


def hang(label: str, text: str, indent: int) -> str:
    """Write a text behind its label, its further lines below its first one.

    >>> print(hang("  target=0.7", "share of CPU to aim for", 15))
      target=0.7   share of CPU to aim for
    """
    head = f"{label:<{indent - 1}} "
    width = max(text_width() - len(head), 20)
    lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return f"\n{' ' * indent}".join([head + lines[0], *lines[1:]]).rstrip()


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written if they fit, and folds what does not."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # argparse leaves two columns free, which text that is written to 80 columns needs
        return "\n".join(f"{indent}{line}" for line in fold(text, width + 2))


def fold(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, none longer than the width if that can be helped."""
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        yield from _fold_paragraph(paragraph, width)
        paragraph = []
        yield from _fold_example(line, width)


def _fold_paragraph(lines: list[str], width: int) -> list[str]:
    if all(len(line) <= width for line in lines):
        return lines
    return textwrap.wrap(" ".join(lines), width, break_on_hyphens=False, break_long_words=False)


def _fold_example(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    if found := _EXAMPLE.fullmatch(line):
        return [*_fold_example(found[1], width), f"{'':6}{found[2]}"]
    parts = textwrap.wrap(line.strip(), width - 8, break_on_hyphens=False, break_long_words=False)
    return [f"  {parts[0]} \\", *(f"{'':6}{part} \\" for part in parts[1:-1]), f"{'':6}{parts[-1]}"]
