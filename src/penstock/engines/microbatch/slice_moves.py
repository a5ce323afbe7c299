"""Moves of slices as plans name them: slice `count/12` from `count/0` to replica `count/2`."""

from collections.abc import Iterable, Mapping

from penstock.core.decision import Move
from penstock.errors import InputError, nearest


def read_moves(moves: Iterable[Move], slices: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Return, by operator, the replica that each slice moves to.

    >>> read_moves([Move("count/12", "count/0", "count/2")], {"count": 64})
    {'count': {12: 2}}
    """
    found: dict[str, dict[int, int]] = {}
    for move in moves:
        operator, number = _read(move.slice, "slice")
        other, home = _read(move.destination, "destination")
        if operator not in slices:
            problem = f"{operator!r} is no operator with slices"
            raise InputError("moves", problem, nearest(operator, slices))
        if other != operator:
            raise InputError("moves", f"slice {move.slice} cannot leave {operator}")
        if number >= slices[operator]:
            raise InputError("moves", f"{operator} has {slices[operator]} slices, got {number}")
        found.setdefault(operator, {})[number] = home
    return found


def _read(text: str, field: str) -> tuple[str, int]:
    name, _, number = text.rpartition("/")
    if not name or not number.isdecimal():
        problem = f"must be an operator and a number, such as count/3, got {text!r}"
        raise InputError(f"moves.{field}", problem)
    return name, int(number)
