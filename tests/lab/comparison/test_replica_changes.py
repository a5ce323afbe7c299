"""Changes of replicas and reversals, from journals."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.loop import Tick
from penstock.engines.port import Batch, Status
from penstock.errors import InputError
from penstock.lab.comparison.replica_changes import (
    add_changes,
    count_changes,
    list_replicas,
)

RECORDED = Path(__file__).parents[2] / "recorded"


def tick(at: float, **replicas: list[int]) -> Tick:
    """One tick, with batches of so many replicas by operator."""
    batches = {
        name: tuple(Batch(at, at, number, 1, 1, 0.1, 0.1) for number in numbers)
        for name, numbers in replicas.items()
    }
    running = {name: numbers[-1] for name, numbers in replicas.items() if numbers}
    return Tick(at=at, status=Status(at=at, requested=running, running=running, batches=batches))


@pytest.mark.parametrize(
    ("replicas", "changes"),
    [
        ([], (0, 0)),
        ([3], (0, 0)),
        ([3, 3, 3], (0, 0)),
        ([1, 2, 4, 8], (3, 0)),
        ([1, 2, 2, 1], (2, 1)),
        ([1, 3, 1, 3, 3, 1], (4, 3)),
    ],
)
def test_a_reversal_is_a_change_against_the_one_before(
    replicas: list[int], changes: tuple[int, int]
) -> None:
    assert count_changes(replicas) == changes


@given(st.lists(st.integers(1, 9), max_size=30))
def test_reversals_are_the_turns_of_the_line(replicas: list[int]) -> None:
    """The oracle: local extremes of the line without its level parts."""
    line = [n for n, before in zip(replicas, [None, *replicas], strict=False) if n != before]
    turns = sum(
        (b > a and b > c) or (b < a and b < c)
        for (a, b), (_, c) in zip(pairwise(line), pairwise(line[1:]), strict=False)
    )
    assert count_changes(replicas) == (max(0, len(line) - 1), turns)


def test_changes_between_two_ticks_count() -> None:
    ticks = [tick(1, split=[1, 2, 1], count=[]), tick(2, split=[1, 3], count=[4])]
    assert list_replicas(ticks) == {"split": [1, 2, 1, 1, 3], "count": [4]}


def test_a_grid_without_journals_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no journal"):
        add_changes({"q1-cosine-ds2": [{"spec": {"seed": 7}}]}, tmp_path)


def test_an_old_journal_without_batches_counts_by_tick(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "images-1066"
    place.mkdir(parents=True)
    shutil.copy(RECORDED / "run-spark-v1.toml", place / "run.toml")
    shutil.copy(RECORDED / "journal-spark-v1.jsonl", place / "journal.jsonl")
    lines = [json.loads(line) for line in (place / "journal.jsonl").read_text().splitlines()]
    running = [line["running"] for line in lines if "running" in line]
    changed = sum(a[name] != b[name] for a, b in pairwise(running) for name in b)
    (run,) = add_changes({"images": [{"spec": {"seed": 1066}}]}, tmp_path)["images"]
    assert run["changes"]["number"] == changed > 0
