"""Markdown from plain values: tables, code blocks, and docstrings."""

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence

#: Columns of a line of prose.
WIDTH = 115


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; an empty text if there are no rows."""
    body = [[_cell(cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if body else ""


def code(text: str, language: str = "python") -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.strip()}\n```"


def join_parts(parts: Iterable[str]) -> str:
    """Join the parts of a page that are not empty, with a blank line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def first_sentence(docstring: str | None) -> str:
    """Return the first sentence of a docstring, without its full stop.

    >>> first_sentence("Run it; see `penstock.run`. Then stop.")
    'Run it; see `penstock.run`'
    """
    paragraph = " ".join(inspect.cleandoc(docstring or "").partition("\n\n")[0].split())
    return re.split(r"\.(?:\s|$)", paragraph, maxsplit=1)[0]


def docstring_text(docstring: str | None) -> str:
    """Return a docstring as Markdown: wrapped paragraphs, examples in fenced blocks."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(docstring or "")):
        is_example, is_code = block.startswith(">>>"), block.startswith("    ")
        if is_example and parts and parts[-1].startswith("```python\n>>>"):
            parts[-1] = code(parts[-1][len("```python\n") : -len("\n```")] + "\n" + block)
        elif is_example or is_code:
            parts.append(code(textwrap.dedent(block)))
        else:
            parts.append(wrap(block))
    return join_parts(parts)


def wrap(text: str) -> str:
    """Wrap a paragraph."""
    words = " ".join(text.split())
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
