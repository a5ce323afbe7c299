"""What each member of a chain did: measured by tasks, added up for snapshots. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.frozen_dict import FrozenDict


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """What one member of a chain did in one task."""

    name: str
    rows_in: int
    rows_out: int
    #: Seconds in its function; of the last member, with the writing of its rows.
    busy_s: float
    #: Rows on which its function failed, sent to its error topic.
    put_aside: int = 0


def read_members(data: Iterable[Mapping[str, Any]]) -> tuple[MemberRecord, ...]:
    """Read what `asdict` wrote."""
    return tuple(MemberRecord(**member) for member in data)


def measure_members(
    tasks: Iterable[Sequence[MemberRecord]], seconds: float
) -> tuple[Mapping[str, Any], ...]:
    """Return rates, selectivity and load of each member over some seconds, in their order.

    `load` are the seconds of work per second, of all replicas; `share` is the part of the
    chain's work that a member takes.

    >>> first = MemberRecord(name="parse", rows_in=100, rows_out=50, busy_s=1.0)
    >>> second = MemberRecord(name="price", rows_in=50, rows_out=50, busy_s=3.0)
    >>> for member in measure_members([(first, second)], 10.0):
    ...     print(dict(member))
    {'name': 'parse', 'rate': 10.0, 'selectivity': 0.5, 'load': 0.1, 'share': 0.25}
    {'name': 'price', 'rate': 5.0, 'selectivity': 1.0, 'load': 0.3, 'share': 0.75}
    """
    by_name: dict[str, list[MemberRecord]] = {}
    for members in tasks:
        for member in members:
            by_name.setdefault(member.name, []).append(member)
    busy_s = {name: sum(record.busy_s for record in records) for name, records in by_name.items()}
    total_s = sum(busy_s.values())
    return tuple(
        FrozenDict(
            name=name,
            rate=round(rows / seconds, 3),
            selectivity=round(sum(r.rows_out for r in records) / rows, 4) if rows else None,
            load=round(busy_s[name] / seconds, 4),
            share=round(busy_s[name] / total_s, 4) if total_s else None,
        )
        for name, records in by_name.items()
        for rows in (sum(record.rows_in for record in records),)
    )
