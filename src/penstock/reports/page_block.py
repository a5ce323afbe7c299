"""Writes what a command made into a Markdown page, between two lines that name the command."""

import re
from pathlib import Path

from penstock.errors import InputError
from penstock.files.atomic import replace
from penstock.files.text import read_text

END = "<!-- end -->"


def write_page_block(path: Path, command: str, body: str) -> None:
    """Replace the text between the lines of a command; `InputError` if the page has no place."""
    begin = f"<!-- {command} -->"
    text, count = re.subn(
        rf"{re.escape(begin)}.*?{re.escape(END)}",
        lambda _: f"{begin}\n{body}\n{END}",
        read_text(path),
        flags=re.DOTALL,
    )
    if count != 1:
        hint = f"write {begin} and {END} where the table belongs"
        raise InputError("--markdown", f"has no place for the table: {str(path)!r}", hint)
    replace(path, text.encode("utf-8"))
