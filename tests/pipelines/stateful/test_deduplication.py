"""Deduplication."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.stateful.streams import (
    COLUMNS,
    SECOND,
    Sql,
    Stream,
    apart,
    ids,
    judged,
    some,
    streams,
    timed,
)

from penstock.errors import InputError
from penstock.pipelines.stateful import distinct, try_batches

#: One row of each key goes on at a time if and only if none of these finds anything.
TWO_ARE_CLOSE = """
    select a.id, b.id from rows a join rows b on {same} and a.id < b.id
    where abs(a.t - b.t) < {within} and a.id in {out} and b.id in {out}
"""
LEFT_OUT_FOR_NOTHING = """
    select a.id from rows a where a.id not in {out} and not exists (
        from rows b where {same} and b.id < a.id and abs(a.t - b.t) < {within} and b.id in {out}
    )
"""
SAME = 'a."user" is not distinct from b."user" and a.page = b.page'


@some
@given(streams(), st.sampled_from([0.5, 3, 5.5, 20]))
def test_rows_go_on_unless_one_close_to_them_did(sql: Sql, stream: Stream, within_s: float) -> None:
    ready = distinct(("user", "page"), within_s=within_s, time="at")
    tried = try_batches(ready, stream.flushed, COLUMNS, **stream.options)
    good, late = judged(stream, lambda row: row["t"] + 1)
    out = [row["id"] for row in tried.rows if row["id"] >= 0]
    assert set(out) <= {row["id"] for row in good}
    assert len(set(out)) == len(out)
    chosen = f"({', '.join(map(str, [*out, -1]))})"
    for query in (TWO_ARE_CLOSE, LEFT_OUT_FOR_NOTHING):
        filled = query.format(same=SAME, within=int(within_s * SECOND), out=chosen)
        assert sql(filled, rows=good) == []
    assert ids(tried.late) == late
    assert tried.state.num_rows == 1


@some
@given(streams())
def test_without_a_time_a_key_goes_on_once(sql: Sql, stream: Stream) -> None:
    tried = try_batches(distinct("user", time="at"), stream.flushed, COLUMNS, **stream.options)
    rows = [row for batch in stream.batches for row in batch]
    first = 'select min(id) from rows group by "user"'
    out = [(row["id"],) for row in tried.rows if row["id"] >= 0]
    assert sorted(out, key=repr) == sql(first, rows=rows)
    assert ids(tried.late) == []


@pytest.mark.parametrize("within_s", [1, 3, 4.5])
def test_rows_of_two_batches_repeat_each_other_up_to_the_time(within_s: float) -> None:
    ready = distinct("user", within_s=within_s)
    tried = try_batches(ready, list(apart(14)), "user string", delay_s=100, slices=3)
    pairs = (map(int, row["user"].split()) for row in tried.outputs[1].to_pylist())
    far = [(a, b) for a in range(14) for b in range(14) if abs(a - b) >= within_s]
    assert sorted(map(tuple, pairs)) == far


def test_rows_go_on_as_they_are_and_in_their_order() -> None:
    batch = timed(5, 3, 4, 9)
    [output, _] = try_batches(distinct("user", within_s=2), [batch, batch], "user string").outputs
    assert output.to_pylist() == batch.take([0, 1, 3]).to_pylist()


def test_a_time_to_live_is_for_what_is_never_forgotten() -> None:
    batches = [timed(0), timed(5), timed(100, user="bob"), timed(101), timed(102)]
    tried = try_batches(distinct("user"), batches, "user string", ttl_s=10)
    assert [row["_event"].second for row in tried.rows] == [0, 40, 41]
    with pytest.raises(InputError, match="ttl_s: would delete open state of distinct"):
        try_batches(distinct("user", within_s=5), batches, "user string", ttl_s=10)


def test_it_needs_a_key() -> None:
    with pytest.raises(InputError, match="by: must name a column"):
        distinct(())
    with pytest.raises(InputError, match="there is no column 'usr'"):
        try_batches(distinct("usr"), [], COLUMNS)
