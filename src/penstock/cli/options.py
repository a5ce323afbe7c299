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
