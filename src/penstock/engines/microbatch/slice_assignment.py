"""Assigns the slices of an operator to the replicas of its next batch, and reads moves. Pure.

The source's offset decides the version of the state. Spark's offset log fixes the rows of a batch,
so a repeated batch begins and ends with the same state, with any number of replicas.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.decision import Move
from penstock.core.frozen_dict import FrozenDict
from penstock.core.placement import place
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.errors import InputError, nearest
from penstock.pipelines.stateful.watermark import watermark_after
from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge, Version, next_version

#: Weight of the last batch in the load of a slice.
_NEW = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceAssignment:
    """The slices of one task, and the state that it begins with."""

    slices: tuple[int, ...]
    #: The state of these slices; its watermark is that of the batch before.
    version: Version
    watermark: int | None
    batch: int
    #: By input: the offsets of the rows of the batch, the same for all tasks.
    starts: Mapping[str, int] = FrozenDict()
    ends: Mapping[str, int] = FrozenDict()


def assign_slices(
    before: BatchRecord | None,
    replicas: int,
    loads: Sequence[float],
    *,
    watermark: int | None,
    pins: Mapping[int, int] = FrozenDict(),
    starts: Mapping[str, int] = FrozenDict(),
    ends: Mapping[str, int] = FrozenDict(),
) -> tuple[SliceAssignment, ...]:
    """Assign slices to replicas by load; slices that fit keep their replica, pinned ones have it.

    There is one load for each slice. `watermark`, `starts` and `ends` are those of the new batch.
    """
    version = (before.state if before else None) or Version(slices=len(loads))
    homes_before = read_homes(before) if before else {}
    homes = place(loads, replicas, homes_before, pins=pins)
    batch = before.batch + 1 if before else 0
    dealt = [[s for s in range(len(loads)) if homes[s] == index] for index in range(replicas)]
    return tuple(
        SliceAssignment(
            slices=tuple(slices),
            version=_select_slices(version, slices),
            watermark=watermark,
            batch=batch,
            starts=starts,
            ends=ends,
        )
        for slices in dealt
    )


def compute_watermark(
    before: BatchRecord | None, delay_us: int, idle: Collection[str] = ()
) -> int | None:
    """Return the watermark of the batch after a record; idle inputs do not hold it back."""
    if before is None:
        return None
    version = before.state.watermark if before.state else None
    return watermark_after(version, before.latest, delay_us, idle)


def _select_slices(version: Version, slices: Sequence[int]) -> Version:
    state_files = {number: version.of(number) for number in slices if version.of(number)}
    return Version(slices=version.slices, state_files=state_files, watermark=version.watermark)


def read_homes(record: BatchRecord) -> dict[int, int]:
    """Return the replica of each slice in a batch."""
    return {number: home for home, task in enumerate(record.tasks) for number in task.slices}


def update_loads(loads: Sequence[float], record: BatchRecord) -> list[float]:
    """Return the mean load of each slice, in seconds per batch, with one more batch."""
    known = list(loads)
    for task in record.tasks:
        for number, seconds in zip(task.slices, task.loads, strict=True):
            known[number] = known[number] * (1 - _NEW) + seconds * _NEW
    return known


def build_version(
    before: BatchRecord | None,
    slices: int,
    state_files: Iterable[StateFile],
    merged: Iterable[FileMerge],
    watermark: int | None,
) -> Version:
    """Return the version of the state after a batch."""
    version = (before.state if before else None) or Version(slices=slices)
    return next_version(version, state_files, merged, watermark)


def read_moves(moves: Iterable[Move], slices: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Return, by operator, the replica that each slice moves to.

    A move names a slice, such as `count/12`, and a replica, such as `count/2`.

    >>> read_moves([Move("count/12", "count/0", "count/2")], {"count": 64})
    {'count': {12: 2}}
    """
    homes: dict[str, dict[int, int]] = {}
    for move in moves:
        operator, number = _parse_name(move.slice, "slice")
        other, home = _parse_name(move.destination, "destination")
        if operator not in slices:
            problem = f"{operator!r} is no operator with slices"
            raise InputError("moves", problem, nearest(operator, slices))
        if other != operator:
            raise InputError("moves", f"slice {move.slice} cannot leave {operator}")
        if number >= slices[operator]:
            raise InputError("moves", f"{operator} has {slices[operator]} slices, got {number}")
        homes.setdefault(operator, {})[number] = home
    return homes


def _parse_name(text: str, field: str) -> tuple[str, int]:
    name, _, number = text.rpartition("/")
    if not name or not number.isdecimal():
        problem = f"must be an operator and a number, such as count/3, got {text!r}"
        raise InputError(f"moves.{field}", problem)
    return name, int(number)
