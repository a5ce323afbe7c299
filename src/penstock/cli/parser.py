"""The parser of all commands: argparse that names the nearest command or option."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from penstock.errors import nearest
from penstock.reports.text_layout import HelpFormatter

#: Longer values are cut in messages.
MAX_MESSAGE = 400


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and what was probably meant."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "formatter_class": HelpFormatter})

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options before argparse complains about what it misses instead."""
        given = list(args or ())
        if self._subparsers is None:
            self._check_options(given)
        parsed, rest = super().parse_known_args(given, namespace)
        if rest and self._subparsers is None:
            self.error(f"too much: {' '.join(rest)}")
        return parsed, rest

    def _check_options(self, given: Sequence[str]) -> None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for word in given:
            if word == "--":
                return
            name, sign, value = word.partition("=")
            if sign and name.startswith("-") and value == "--":  # which argparse would drop
                self.error(f"argument {name}: expected one argument")
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                self.error(f"unknown option {name}: {nearest(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"unknown {value!r}: {hint}")

    def error(self, message: str) -> NoReturn:
        """Show the usage and the message; exit code 2."""
        super().error(shorten(message))


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """Leave out the middle of what nobody would read to its end.

    >>> shorten("0123456789" * 5, 20)
    '01234567 ... 3456789'
    """
    if len(text) <= limit:
        return text
    kept = (limit - 5) // 2
    return f"{text[: limit - 5 - kept]} ... {text[-kept:]}"
