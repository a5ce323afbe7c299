"""Totals go on from batch to batch, and say what no batch took."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.microbatch.batch_record import (
    BatchRecord,
    TaskRecord,
    read_record,
    write_record,
)
from penstock.engines.microbatch.operator_totals import AHEAD, SINCE, TotalsRules, add_totals

RULES = {
    "batch": TotalsRules(),
    "frame": TotalsRules(counts_calls=False),
    "sliced": TotalsRules(takes_whole_slices=True),
    "native": TotalsRules(),
    "ingest": TotalsRules(),
}


def record(batch: int, start: int, end: int, rows_in: int | None = None) -> BatchRecord:
    """A batch that took rows [start, end) of topic a, and gave as many."""
    rows = end - start if rows_in is None else rows_in
    task = TaskRecord(rows_in=rows, rows_out=rows, busy_s=1, cpu_s=1, began=0, ended=1)
    return BatchRecord(
        batch=batch,
        start={"a": start},
        end={"a": end},
        planned_at=0.0,
        committed_at=1.0,
        tasks=(task,),
    )


def chain(*records: BatchRecord, kind: str = "batch") -> BatchRecord:
    """Give each record its totals, through the file that it is written to."""
    before = None
    for each in records:
        before = read_record(write_record(add_totals(each, before, RULES[kind])))
    assert before is not None
    return before


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_batches_that_follow_each_other_lose_nothing(sizes: list[int]) -> None:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    starts = [0, *ends[:-1]]
    parts = enumerate(zip(starts, ends, strict=True))
    last = chain(*(record(i, start, end) for i, (start, end) in parts))
    assert last.totals["rows_in"] == last.totals["rows_out"] == sum(sizes)
    assert (last.totals["skipped"], last.totals["repeated"], last.totals[SINCE]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("second", "skipped", "repeated"),
    [
        pytest.param(record(1, 10, 20), 0, 0, id="all is well"),
        pytest.param(record(1, 13, 20), 3, 0, id="it begins behind the end of the last"),
        pytest.param(record(1, 7, 20), 0, 3, id="it begins before the end of the last"),
        pytest.param(record(1, 10, 20, rows_in=9), 1, 0, id="its tasks took fewer rows"),
        pytest.param(record(1, 10, 20, rows_in=12), 0, 2, id="its tasks took more rows"),
        pytest.param(
            replace(record(1, 10, 20, rows_in=6), dropped={"timeout": 4}), 0, 0, id="dropped"
        ),
    ],
)
def test_what_no_batch_took_is_lost_for_ever(
    second: BatchRecord, skipped: int, repeated: int
) -> None:
    last = chain(record(0, 0, 10), second, record(2, 20, 30))
    assert (last.totals["skipped"], last.totals["repeated"]) == (skipped, repeated)


def test_rounded_parts_of_slices_are_no_loss() -> None:
    halves = chain(record(0, 0, 10, rows_in=12), record(1, 10, 20, rows_in=9), kind="sliced")
    assert (halves.totals["skipped"], halves.totals["repeated"], halves.totals[AHEAD]) == (0, 0, 1)
    whole = chain(record(0, 0, 10, rows_in=12), record(1, 10, 20, rows_in=8), kind="sliced")
    assert whole.totals[AHEAD] == 0


@pytest.mark.parametrize(
    ("kind", "rows_out", "filtered", "expanded"),
    [("frame", 4, 6, 0), ("frame", 25, 0, 15), ("sliced", 4, 0, 0), ("native", 4, 0, 0)],
)
def test_what_a_frame_leaves_out_is_filtered(
    kind: str, rows_out: int, filtered: int, expanded: int
) -> None:
    first = record(0, 0, 10)
    (task,) = first.tasks
    last = chain(replace(first, tasks=(replace(task, rows_out=rows_out),)), kind=kind)
    assert (last.totals["filtered"], last.totals["expanded"]) == (filtered, expanded)


def test_a_record_of_an_earlier_version_is_where_counting_begins() -> None:
    old = record(7, 100, 200)
    last = add_totals(record(8, 200, 210), old, RULES["batch"])
    assert (last.totals["rows_in"], last.totals[SINCE], last.totals["skipped"]) == (10, 8, 0)
