"""Options that several commands share."""

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
