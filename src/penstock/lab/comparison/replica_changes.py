"""Counts how often the replicas of operators changed, and how often they turned back.

Batches say how many replicas ran, so a change between two ticks is counted, too. A *reversal* is a
change of an operator's replicas against the direction of its change before. A load that rises and
falls needs one at each of its turns; all others are oscillation.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from penstock.control.loop import Tick
from penstock.errors import InputError
from penstock.lab.grid.backend import Result
from penstock.lab.grid.runner import RUNS
from penstock.runs.run_directory import read_run


class ReplicaChanges(NamedTuple):
    """Changes of replicas, and those of them that turn back."""

    number: int
    reversals: int


def count_changes(replicas: Iterable[int]) -> ReplicaChanges:
    """Count the changes in the replicas of one operator, one number after the other.

    >>> count_changes([3, 5, 5, 6, 4, 5])
    ReplicaChanges(number=4, reversals=2)
    """
    steps = [after - before for before, after in pairwise(replicas) if after != before]
    turns = [first for first, second in pairwise(steps) if (first > 0) != (second > 0)]
    return ReplicaChanges(len(steps), len(turns))


def list_replicas(ticks: Sequence[Tick]) -> dict[str, list[int]]:
    """Return the replicas that ran, by operator: by batch, or by tick without batches."""
    counts: dict[str, list[int]] = {}
    for tick in ticks:
        for name, batches in tick.status.batches.items():
            counts.setdefault(name, []).extend(batch.replicas for batch in batches)
    if not counts:  # an old journal
        for tick in ticks:
            for name, replicas in tick.status.running.items():
                counts.setdefault(name, []).append(replicas)
    return counts


def add_changes(
    results: Mapping[str, Sequence[Result]], directory: Path
) -> dict[str, list[dict[str, Any]]]:
    """Return the results of runs with journals, each with `changes {number, reversals}`."""
    return {
        cell: [{**run, "changes": _count_in(find_run(directory, cell, run))} for run in runs]
        for cell, runs in results.items()
    }


def find_run(directory: Path, cell: str, result: Result) -> Path:
    """Return the directory of a run of a grid; `InputError` if it is not there."""
    place = directory / RUNS / f"{cell}-{result['spec']['seed']}"
    if not place.is_dir():
        hint = "runs on Spark keep their journals in runs/; grids of simulated runs have none"
        raise InputError("--changes", f"there is no journal in {str(place)!r}", hint)
    return place


def _count_in(place: Path) -> dict[str, int]:
    counts = [
        count_changes(numbers) for numbers in list_replicas(read_run(place).journal.ticks).values()
    ]
    return {
        "number": sum(count.number for count in counts),
        "reversals": sum(count.reversals for count in counts),
    }
