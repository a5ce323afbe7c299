"""Chains as text: their members, why they end, and which member takes the most time."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.numbers import pretty
from penstock.core.snapshot import OperatorSnapshot


def chain_text(members: Sequence[str], end: str) -> str:
    """Return the line about a chain.

    >>> chain_text(["parse", "price"], "no operator reads priced")
    'parse > price (ends there: no operator reads priced)'
    """
    return f"{' > '.join(members)} (ends there: {end})"


def members_of(operator: OperatorSnapshot) -> Sequence[Mapping[str, Any]]:
    """Return what was measured of each member of a chain; nothing for an operator alone."""
    members = operator.extra.get("members", ())
    return members if isinstance(members, Sequence) else ()


def find_slowest(members: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the member that takes the most time, the bottleneck of a chain; None if unknown."""
    measured = [member for member in members if member["share"] is not None]
    return max(measured, key=lambda member: float(member["share"]), default=None)


def describe_slowest(members: Sequence[Mapping[str, Any]]) -> str:
    """Name the member that takes the most time; empty if nothing was measured.

    >>> describe_slowest([{"name": "parse", "share": 0.25}, {"name": "price", "share": 0.75}])
    'price takes 75 % of its time'
    """
    slowest = find_slowest(members)
    if slowest is None:
        return ""
    return f"{slowest['name']} takes {100 * slowest['share']:.0f} % of its time"


def describe_member(member: Mapping[str, Any]) -> str:
    """Return what a member of a chain does.

    >>> describe_member({"name": "parse", "rate": 120.0, "selectivity": 0.5, "share": 0.25})
    'parse takes 120 records/s, puts out 0.5 for each, 25 % of the time'
    """
    parts = [f"{member['name']} takes {pretty(member['rate'])} records/s"]
    if member["selectivity"] is not None:
        parts.append(f"puts out {pretty(member['selectivity'])} for each")
    if member["share"] is not None:
        parts.append(f"{100 * member['share']:.0f} % of the time")
    return ", ".join(parts)
