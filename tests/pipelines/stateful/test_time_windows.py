"""Tumbling and sliding windows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.stateful.streams import (
    COLUMNS,
    SECOND,
    Sql,
    Stream,
    ids,
    judged,
    shown,
    some,
    streams,
    timed,
)

from penstock.errors import InputError
from penstock.pipelines.stateful import try_batches, windows

SIZES = [(10, 10), (10, 5), (10, 4), (3, 2), (7.5, 7.5), (60, 1), (0.5, 0.5)]


@some
@given(streams(), st.sampled_from(SIZES), st.sampled_from([(), ("user",), ("user", "page")]))
def test_closed_windows_hold_what_was_not_late(
    sql: Sql, stream: Stream, sizes: tuple[float, float], by: tuple[str, ...]
) -> None:
    size, every = (int(seconds * SECOND) for seconds in sizes)
    ready = windows(by, size_s=sizes[0], every_s=sizes[1], sums=("price", "weight"), time="at")
    tried = try_batches(ready, stream.flushed, COLUMNS, **stream.options)

    good, late = judged(stream, lambda row: row["t"] // every * every + size)
    key = ", ".join(f'"{name}"' for name in by)
    expected = f"""
        with places as (
            select rows.*, unnest(generate_series(t // {every} * {every}, t - {size}, -{every})) s
            from rows
        )
        select {key + "," if by else ""} s, s + {size}, count(*), sum(price)::bigint, sum(weight),
            max(e)
        from places where s + {size} > t and (w is null or s + {size} > w)
        group by {key + "," if by else ""} s
    """
    names = (*by, "start", "end", "n", "sum_price", "sum_weight", "_event")
    found = [row for output in tried.outputs for row in shown(output, *names)]
    assert sorted(found, key=repr) == sql(expected, rows=good)
    assert ids(tried.late) == late
    # only the row that closed all others is left
    assert tried.state.num_rows == -(-size // every) or size % every


def test_a_window_is_told_when_the_watermark_reaches_its_end_and_not_before() -> None:
    seconds: list[list[float]] = [[9.5], [9.9], [10], [9.9, 10], [25], []]
    batches = [timed(*some) for some in seconds]
    tried = try_batches(windows(size_s=10), batches, "user string")
    # the watermark is that of the batches before: it is 10 s from the fourth batch on
    assert [output.num_rows for output in tried.outputs] == [0, 0, 0, 1, 0, 1]
    assert [row["n"] for row in tried.rows] == [2, 2]
    assert [len(late) for late in tried.late] == [0, 0, 0, 1, 0, 0]
    assert tried.watermark == 25 * SECOND


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"size_s": 0}, "size_s: must be seconds, above 0, got 0"),
        ({"size_s": float("inf")}, "size_s: must be seconds, above 0, got inf"),
        ({"size_s": "10"}, "size_s: must be seconds, above 0, got '10'"),
        ({"size_s": 1e-9}, "size_s: must be at least a microsecond, got 1e-09"),
        ({"size_s": 5, "every_s": -1}, "every_s: must be seconds, above 0, got -1"),
        ({"size_s": 5, "every_s": 6}, "every_s: must be at most size_s 5, got 6"),
    ],
)
def test_windows_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        windows(**options)
    assert str(wrong.value).splitlines()[0] == problem


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        ("when", "try_batches.time: there is no column 'when'"),
        ("price", "try_batches.time: column 'price' must be a timestamp, got long"),
    ],
)
def test_times_that_are_none(time: str, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(windows(size_s=1, time=time), [], COLUMNS)
    assert str(wrong.value).splitlines()[0] == problem


def test_a_time_to_live_would_take_open_windows_away() -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(windows(size_s=1), [], COLUMNS, ttl_s=5)
    assert wrong.value.field == "try_batches.ttl_s"
    assert "leave it out" in wrong.value.hint
