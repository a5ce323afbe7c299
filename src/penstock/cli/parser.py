"""The parser of all commands: suggests the nearest command or option, folds help texts."""

import argparse
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from penstock.errors import nearest

#: Longer values are cut in messages.
MAX_MESSAGE = 400
#: A command with a remark behind it, as in examples.
_EXAMPLE = re.compile(r"(\s+\S.*?)\s{2,}(\S.*)")


class Parser(argparse.ArgumentParser):
    """Reports mistakes in one line, with the nearest known name."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "formatter_class": HelpFormatter})

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options before argparse reports missing ones."""
        given = list(args or ())
        if self._subparsers is None:
            self._check_options(given)
        parsed, rest = super().parse_known_args(given, namespace)
        if rest and self._subparsers is None:
            self.error(f"unexpected argument: {' '.join(rest)}")
        return parsed, rest

    def _check_options(self, given: Sequence[str]) -> None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for word in given:
            if word == "--":
                return
            name, sign, value = word.partition("=")
            if sign and name.startswith("-") and value == "--":  # argparse would drop it
                self.error(f"argument {name}: expected one argument")
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                self.error(f"unknown option {name}: {nearest(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"unknown {value!r}: {hint}")

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message; exit with code 2."""
        super().error(shorten(message))


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """Cut the middle out of a long text.

    >>> shorten("0123456789" * 5, 20)
    '01234567 ... 3456789'
    """
    if len(text) <= limit:
        return text
    kept = (limit - 5) // 2
    return f"{text[: limit - 5 - kept]} ... {text[-kept:]}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps lines that fit as they are, and folds the others."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # argparse leaves two columns free; our texts are written to 80 columns
        return "\n".join(f"{indent}{line}" for line in fold(text, width + 2))


def fold(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, folded to the width where possible."""
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
    if example := _EXAMPLE.fullmatch(line):
        return [*_fold_example(example[1], width), f"{'':6}{example[2]}"]
    parts = textwrap.wrap(line.strip(), width - 8, break_on_hyphens=False, break_long_words=False)
    return [f"  {parts[0]} \\", *(f"{'':6}{part} \\" for part in parts[1:-1]), f"{'':6}{parts[-1]}"]
