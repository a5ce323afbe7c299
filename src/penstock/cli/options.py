"""Options that several commands share."""

import argparse
from collections.abc import Sequence

from penstock.errors import InputError


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Read `k=v` options into a dictionary.

    >>> parse_pairs(["target=0.9"], "--param")
    {'target': '0.9'}
    """
    given: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name or not value.strip():
            raise InputError(option, f"must be name=value, got {pair!r}")
        if name in given:
            raise InputError(option, f"gives {name!r} twice")
        given[name] = value.strip()
    return given


def read_minutes(text: str) -> float:
    """Read minutes, or a part of one; whole ones stay whole numbers.

    >>> read_minutes("140"), read_minutes("0.5")
    (140, 0.5)
    """
    try:
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number of minutes, got {text!r}") from None


def read_initial(text: str | None) -> dict[str, int] | int | None:
    """Read replicas for all operators, or by name.

    >>> read_initial("5"), read_initial("source:5,sink:2")
    (5, {'source': 5, 'sink': 2})
    """
    if text is None:
        return None
    try:
        if ":" not in text:
            return int(text)
        pairs = [part.rpartition(":") for part in text.split(",")]
        return {name.strip(): int(number) for name, _, number in pairs}
    except ValueError:
        problem = f"must be a whole number, or name:number pairs, got {text!r}"
        raise InputError("--initial", problem, "such as 5, or source:5,sink:2") from None
