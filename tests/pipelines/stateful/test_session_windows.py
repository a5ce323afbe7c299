"""Session windows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.stateful.streams import (
    COLUMNS,
    SECOND,
    Row,
    Sql,
    Stream,
    ids,
    shown,
    some,
    streams,
    timed,
    watermarks,
)

from penstock.errors import InputError
from penstock.pipelines.stateful import sessions, try_batches

#: Rows less than a gap apart, one by one.
ISLANDS = """
    with steps as (
        select *, coalesce(t - lag(t) over (partition by {key} order by t) >= {gap}, true) step
        from rows
    ), islands as (
        select *, sum(step::int) over (partition by {key} order by t, id) island from steps
    )
    select {shown} min(t), max(t) + {gap} - {touching}, count(*), sum(price)::bigint,
        sum(weight), max(e)
    from islands group by {key}, island
"""


def accepted(stream: Stream, gap: int, by: tuple[str, ...]) -> tuple[list[Row], list[int]]:
    """The rule: late is what is closed by itself, or close to a session that is closed."""
    good: list[Row] = []
    late: list[int] = []
    marks = watermarks(stream.batches, stream.delay_s)
    for batch, mark in zip(stream.batches, marks, strict=True):
        new = []
        closed = [] if mark is None else closed_sessions(good, gap, by, mark)
        for row in batch:
            key = tuple(row[name] for name in by)
            touches = any(k == key and row["t"] in range(a, b) for k, a, b in closed)
            if mark is not None and (row["t"] + gap <= mark or touches):
                late.append(row["id"])
            else:
                new.append(row)
        good += new
    return good, late


def closed_sessions(rows: list[Row], gap: int, by: tuple[str, ...], mark: int) -> list[Any]:
    """Which times of a key would be part of a session that is closed, one row after the other."""
    found: dict[Any, list[list[int]]] = {}
    for row in sorted(rows, key=lambda row: row["t"]):
        mine = found.setdefault(tuple(row[name] for name in by), [])
        if mine and row["t"] - mine[-1][1] < gap:
            mine[-1][1] = row["t"]
        else:
            mine.append([row["t"], row["t"]])
    ends = [(key, first, last) for key, each in found.items() for first, last in each]
    return [(k, first - gap + 1, last + gap) for k, first, last in ends if last + gap <= mark]


@some
@given(
    streams(),
    st.sampled_from([0.5, 3, 5.5, 20]),
    st.sampled_from([(), ("user", "page")]),
    st.booleans(),
)
def test_sessions_are_islands_of_what_was_not_late(
    sql: Sql, stream: Stream, gap_s: float, by: tuple[str, ...], touching: bool
) -> None:
    ready = sessions(by, gap_s=gap_s, sums=("price", "weight"), time="at", touching=touching)
    tried = try_batches(ready, stream.flushed, COLUMNS, **stream.options)
    gap = int(gap_s * SECOND) + touching
    good, late = accepted(stream, gap, by)
    columns = ", ".join(f'"{name}"' for name in by)
    query = ISLANDS.format(
        key=columns or "t >= 0",
        gap=gap,
        touching=int(touching),
        shown=columns and f"{columns},",
    )
    names = (*by, "start", "end", "n", "sum_price", "sum_weight", "_event")
    found = [row for output in tried.outputs for row in shown(output, *names)]
    assert sorted(found, key=repr) == sql(query, rows=good)
    assert ids(tried.late) == late
    # the session that closed all others, and the row that says that there is one
    assert tried.state.num_rows == 2


def spans(
    *batches: tuple[float, ...], delay_s: float = 0.0, touching: bool = False
) -> list[list[tuple[int, int, int]]]:
    """Start and end in seconds and the number of rows of the sessions that each batch tells."""
    ready = sessions("user", gap_s=10, touching=touching)
    tried = try_batches(ready, [timed(*times) for times in batches], "user string", delay_s=delay_s)
    return [
        [(row["start"].second, row["end"].second, row["n"]) for row in output.to_pylist()]
        for output in tried.outputs
    ]


def test_a_row_joins_two_sessions() -> None:
    assert spans((0,), (15,), (8,), (50,), (), delay_s=30) == [[], [], [], [], []]
    assert spans((0,), (15,), (8,), (55,), (), delay_s=30) == [[], [], [], [], [(0, 25, 3)]]


def test_a_gap_ends_a_session_at_once() -> None:
    assert spans((0, 10), (20,), ()) == [[], [(0, 10, 1)], [(10, 20, 1)]]
    assert spans((0, 9.999999), (30,), ())[2] == [(0, 19, 2)]


def test_rows_that_are_a_gap_apart_touch() -> None:
    assert spans((0, 10), (20,), (31,), (), touching=True)[3] == [(0, 30, 3)]
    # at 10 s one that touches may still come
    assert spans((0,), (10,), (21,), (), touching=True) == [[], [], [], [(0, 20, 2)]]
    assert spans((0, 10.000001), (11,), (), touching=True)[1] == [(0, 10, 1)]


def test_what_was_told_stays_true() -> None:
    # at 10 s the first session is told, and a row at 5 s would have been part of it
    assert spans((0,), (10,), (5,), (50,), ()) == [[], [], [(0, 10, 1)], [], [(10, 20, 1)]]
    assert spans((0,), (10,), (), (5,), (50,), ())[3:] == [[], [], [(10, 20, 1)]]
    # one at 10 s would not
    assert spans((0,), (10,), (), (10,), (50,), ())[3:] == [[], [], [(10, 20, 2)]]


@pytest.mark.parametrize("gap_s", [0, -1, None, float("nan")])
def test_a_gap_takes_time(gap_s: Any) -> None:
    with pytest.raises(InputError, match="gap_s: must be seconds, above 0"):
        sessions(gap_s=gap_s)
