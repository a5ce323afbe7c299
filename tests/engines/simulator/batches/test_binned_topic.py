"""Topics in bins hold the same rows as topics row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.simulator.batches.binned_topic import (
    NO_ROWS,
    BinnedRows,
    BinnedTopic,
    join_rows,
    produced_rows,
)
from penstock.workloads.arrivals import arrivals
from penstock.workloads.workload import Workload

COMMIT = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=5)


def rows_of(pairs: list[tuple[int, int]]) -> BinnedRows:
    due, counts = zip(*pairs, strict=True) if pairs else ((), ())
    return BinnedRows(np.array(due, dtype=float), np.array(counts, dtype=np.int64))


def one_by_one(rows: BinnedRows) -> list[float]:
    return np.repeat(rows.due, rows.counts).tolist()


@given(st.lists(COMMIT, max_size=6), st.data())
def test_reading_between_offsets_is_a_slice_of_all_rows(
    commits: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    topic, every = BinnedTopic(), []
    for pairs in commits:
        topic.append(rows_of(pairs))
        every += one_by_one(rows_of(pairs))
    assert topic.end == len(every)
    start = data.draw(st.integers(0, len(every)))
    end = data.draw(st.integers(start, len(every)))
    assert one_by_one(join_rows(list(topic.read(start, end)))) == every[start:end]


def test_what_all_readers_left_behind_can_be_forgotten() -> None:
    topic = BinnedTopic()
    for second in range(3000):
        topic.append(rows_of([(second, 2)]))
    topic.forget(5000)
    assert one_by_one(join_rows(list(topic.read(5000, 5003)))) == [2500.0, 2500.0, 2501.0]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 9)), min_size=1, max_size=300))
def test_a_record_has_few_bins_and_all_rows(pairs: list[tuple[int, int]]) -> None:
    rows = rows_of(sorted(pairs))
    events = rows.events()
    assert len(events) <= 200
    assert sum(count for _, count in events) == rows.total
    mean = sum(second * count for second, count in events) / rows.total
    width = max(0.01, 500 / 199)
    assert mean == pytest.approx(float((rows.due * rows.counts).sum()) / rows.total, abs=width)


def test_nothing_has_no_bins() -> None:
    assert NO_ROWS.events() == ()
    assert join_rows([]) is NO_ROWS


@pytest.mark.parametrize("load", [Workload.of_steps([20, 3, 2000], step_s=70.0)])
def test_producers_write_what_is_due_by_then(load: Workload) -> None:
    reached = 0
    for number, rows in enumerate(produced_rows(load, "deterministic", 1, 0.05), start=1):
        reached += rows.total
        assert reached == load.count(0, number * 0.05)
        assert all((number - 1) * 0.05 < due < number * 0.05 for due in rows.due)
    assert reached == load.total_records


def test_drawn_arrivals_are_those_of_the_producer() -> None:
    load = Workload.of_steps([30, 5], step_s=45.0)
    times = np.concatenate(list(arrivals("poisson", load, seed=7)))
    counts = [rows.total for rows in produced_rows(load, "poisson", 7, 0.05)]
    expected, _ = np.histogram(times, bins=np.arange(len(counts) + 1) * 0.05)
    assert sum(counts) == len(times)
    assert np.abs(np.cumsum(counts) - np.cumsum(expected)).max() <= 1
