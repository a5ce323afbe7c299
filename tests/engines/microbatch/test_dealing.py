"""Rows are dealt to tasks: all of them, once, in order, in the wanted proportion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.microbatch.dealing import (
    OffsetRange,
    compute_cuts,
    deal,
    split_by_speed,
    subtract_ranges,
    take,
)

LINES = st.lists(
    st.builds(
        lambda topic, start, rows: OffsetRange(topic, start, start + rows),
        st.sampled_from("abc"),
        st.integers(0, 1000),
        st.integers(0, 50),
    ),
    max_size=5,
)
PARTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=9)


def rows_of(stretches: list[OffsetRange] | tuple[OffsetRange, ...]) -> list[tuple[str, int]]:
    return [(s.topic, row) for s in stretches for row in range(s.start, s.end)]


@given(LINES, PARTS)
def test_every_row_goes_to_one_task_and_order_is_kept(
    line: list[OffsetRange], parts: list[float]
) -> None:
    edges = compute_cuts(parts, sum(stretch.rows for stretch in line))
    dealt = deal(line, edges)
    assert len(dealt) == len(parts)
    assert [row for task in dealt for row in rows_of(task)] == rows_of(line)


@given(PARTS, st.integers(0, 10_000))
def test_no_task_is_off_its_share_by_more_than_a_row(parts: list[float], rows: int) -> None:
    edges = compute_cuts(parts, rows)
    for part, low, high in zip(parts, edges, edges[1:], strict=False):
        assert high - low == pytest.approx(rows * part / sum(parts), abs=1.001)


@given(
    st.lists(st.tuples(st.floats(1, 100), st.floats(0, 5)), min_size=1, max_size=6),
    st.integers(1, 5000),
)
def test_shares_make_all_end_together(replicas: list[tuple[float, float]], rows: int) -> None:
    speeds = [speed for speed, _ in replicas]
    remaining = [seconds for _, seconds in replicas]
    dealt = split_by_speed(speeds, remaining, rows)
    assert sum(dealt) == pytest.approx(rows)
    slowest = 0.05 * sum(speeds) / len(speeds)
    ends = [
        seconds + part / max(speed, slowest)
        for part, speed, seconds in zip(dealt, speeds, remaining, strict=True)
        if part > 1e-9
    ]
    assert max(ends) == pytest.approx(min(ends))
    idle = [s for part, s in zip(dealt, remaining, strict=True) if part <= 1e-9]
    assert all(seconds >= max(ends) - 1e-6 for seconds in idle)


def test_a_slow_replica_gets_less_and_never_nothing() -> None:
    dealt = split_by_speed([100.0, 100.0, 1.0], [0.0, 0.0, 0.0], 1000)
    assert dealt[0] == dealt[1] > 10 * dealt[2] > 0


def test_an_unknown_replica_counts_as_a_usual_one() -> None:
    assert split_by_speed([80.0, None, 40.0], [0.0] * 3, 180) == [80.0, 60.0, 40.0]


@given(
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=5),
)
def test_what_is_left_is_what_is_not_skipped(rows: int, gaps: list[tuple[int, int]]) -> None:
    skipped, reached = [], 0
    for low, length in sorted(gaps):
        if low >= reached:
            skipped.append((low, low + length))
            reached = low + length
    left = subtract_ranges(OffsetRange("a", 3, 3 + rows), skipped)
    dead = {row for low, high in skipped for row in range(low, high)}
    assert [row for _, row in rows_of(left)] == [r for r in range(3, 3 + rows) if r not in dead]


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 500)), st.integers(1, 600))
def test_a_limit_is_used_up_and_never_exceeded(waiting: dict[str, int], limit: int) -> None:
    taken = take(waiting, limit)
    assert sum(taken.values()) == min(limit, sum(waiting.values()))
    assert all(0 <= taken[topic] <= waiting[topic] for topic in waiting)
