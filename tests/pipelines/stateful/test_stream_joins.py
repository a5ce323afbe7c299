"""Joining two streams with bounds on the time between them."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.stateful.streams import (
    COLUMNS,
    FAR,
    SECOND,
    Row,
    Sql,
    Stream,
    apart,
    shown,
    some,
    streams,
    table,
    timed,
)

from penstock.errors import InputError
from penstock.pipelines.stateful import join, try_batches

users = st.sampled_from([None, "", "ann", "bob"])
READS = {"left": COLUMNS, "right": COLUMNS}


def marks(batches: list[tuple[list[Row], list[Row]]], delay_s: float) -> list[int | None]:
    """The watermark of each batch: the least over both inputs, once both had rows."""
    seen: tuple[list[int], list[int]] = ([], [])
    found: list[int | None] = []
    for batch in batches:
        both = all(seen)
        found.append(min(map(max, seen)) - int(delay_s * SECOND) if both else None)
        for times, rows in zip(seen, batch, strict=True):
            times += [row["t"] for row in rows]
    return found


def padded(one: Stream, other: Stream) -> list[tuple[list[Row], list[Row]]]:
    """Batches of both, as many as the longer one has."""
    count = max(len(one.batches), len(other.batches))
    sides = [[*each.batches, *[[]] * (count - len(each.batches))] for each in (one, other)]
    return list(zip(*sides, strict=True))


@some
@given(
    streams(most=25, keys=users),
    streams(most=25, keys=users),
    st.sampled_from([(0, 0), (0, 5), (-5, 0), (-3, 4.5), (2, 10), (-10, -2), (-1000, 1000)]),
)
def test_each_pair_of_rows_that_are_not_late_comes_once(
    sql: Sql, one: Stream, other: Stream, within_s: tuple[float, float]
) -> None:
    batches = padded(one, other)
    sides: tuple[list[Row], list[Row]] = ([], [])
    late = []
    for batch, mark in zip(batches, marks(batches, one.delay_s), strict=True):
        for side, rows in zip(sides, batch, strict=True):
            side += [row for row in rows if mark is None or row["t"] >= mark]
            late += [row["id"] for row in rows if mark is not None and row["t"] < mark]

    ready = join("left", "right", on=("user", "page"), within_s=within_s, time="at")
    far = {"id": -1, "page": 0, "price": 0, "weight": 0.0, "t": FAR, "e": FAR}
    last = ([far | {"user": "far left"}], [far | {"user": "far right"}])
    given = [
        dict(zip(READS, map(table, batch), strict=True)) for batch in (*batches, last, ([], []))
    ]
    tried = try_batches(ready, given, READS, **replace(one, batches=[]).options)

    low, high = (int(seconds * SECOND) for seconds in within_s)
    query = f"""
        select a."user", a.page, a.id, b.id, a.price, b.price, greatest(a.e, b.e)
        from l a join r b on a."user" = b."user" and a.page = b.page
            and b.t - a.t between {low} and {high}
    """
    names = ("user", "page", "left_id", "right_id", "left_price", "right_price", "_event")
    found = [row for output in tried.outputs for row in shown(output, *names)]
    assert sorted(found, key=repr) == sql(query, l=sides[0], r=sides[1])
    assert sorted(row["id"] for rows in tried.late for row in rows) == sorted(late)
    # the two rows that closed everything, and for each the row that says that there is one
    assert tried.state.num_rows == 4


@pytest.mark.parametrize("within_s", [(0, 0), (-3, 4), (1, 2), (-4.5, -1)])
@pytest.mark.parametrize("first", ["a", "b"])
def test_bounds_belong_to_the_time(first: str, within_s: tuple[float, float]) -> None:
    both = dict(zip("ab", apart(14), strict=True))
    batches = [{first: both.pop(first)}, both]
    ready = join("a", "b", on="user", within_s=within_s)
    tried = try_batches(ready, batches, {"a": "user string", "b": "user string"}, slices=3)
    pairs = (map(int, row["user"].split()) for row in tried.outputs[1].to_pylist())
    close = [(a, b) for a in range(14) for b in range(14) if within_s[0] <= b - a <= within_s[1]]
    assert sorted(map(tuple, pairs)) == close


@pytest.mark.parametrize(("first", "then", "within_s"), [("a", "b", (0, 10)), ("b", "a", (-10, 0))])
def test_a_row_waits_as_long_as_a_partner_may_come(
    first: str, then: str, within_s: tuple[float, float]
) -> None:
    others = {"a": timed(12, user="bob"), "b": timed(12, user="cy")}
    batches = [{first: timed(9)}, others, {}, {then: timed(19)}, {then: timed(19.000001)}]
    ready = join("a", "b", on="user", within_s=within_s)
    tried = try_batches(ready, batches, {"a": "user string", "b": "user string"})
    assert [output.num_rows for output in tried.outputs] == [0, 0, 0, 1, 0]


def test_columns_of_both_and_keys_with_two_names() -> None:
    ready = join("orders", "large-parcels", on={"id": "order"}, within_s=5)
    reads = {"orders": "id long, note string, cost int", "large-parcels": "order long, note string"}
    batch = {
        "orders": [{"id": 1, "note": "a", "cost": 3}],
        "large-parcels": [{"order": 1, "note": "b"}, {"order": 2, "note": "c"}],
    }
    tried = try_batches(ready, [batch], reads)
    assert tried.rows == [{"id": 1, "orders_note": "a", "cost": 3, "large-parcels_note": "b"}]


def test_a_key_on_the_left_is_not_mistaken_for_a_column_on_the_right() -> None:
    ready = join("a", "b", on={"id": "parent"}, within_s=5)
    reads = {"a": "id long", "b": "parent long, id long"}
    tried = try_batches(ready, [{"a": [{"id": 1}], "b": [{"parent": 1, "id": 7}]}], reads)
    assert tried.rows == [{"id": 1, "b_id": 7}]


def test_one_side_alone_closes_nothing() -> None:
    ready = join("a", "b", on="user", within_s=5)
    batches = [{"a": timed(0)}, {"a": timed(1000)}, {"b": timed(3)}, {"b": timed(1000)}, {}]
    tried = try_batches(ready, batches, {"a": "user string", "b": "user string"})
    assert [output.num_rows for output in tried.outputs] == [0, 0, 1, 1, 0]
    assert tried.watermark == 1000 * SECOND


def test_many_rows_of_one_key_meet_all_of_the_other_side() -> None:
    ready = join("a", "b", on="user", within_s=100)
    rows = timed(*range(60))
    tried = try_batches(ready, [{"a": rows}, {"b": rows}], {"a": "user string", "b": "user string"})
    assert tried.outputs[1].num_rows == 60 * 60
    # a pair is as new as the newer one of its rows
    stamps = tried.outputs[1].column("_event").cast(pa.int64()).to_pylist()
    newest = sorted(max(a, b) * SECOND for a in range(60) for b in range(60))
    assert sorted(stamps) == newest


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"within_s": (5, -5)}, "within_s: must be the earliest and the latest time in seconds"),
        ({"within_s": (1, 2, 3)}, "within_s: must be the earliest and the latest time in seconds"),
        ({"within_s": ("a", "b")}, "within_s: must be the earliest and the latest time in seconds"),
        ({"within_s": None}, "within_s: must be the earliest and the latest time in seconds"),
        ({"within_s": -1}, "within_s: must be the earliest and the latest time in seconds"),
        ({"within_s": float("inf")}, "within_s: must be the earliest and the latest time"),
        ({"on": ()}, "on: must name a column"),
        ({"on": {}}, "on: must name a column"),
        ({"on": {"a": "x", "b": "x"}}, "on: names a column twice: x, x"),
        ({"right": "left"}, "right: must be another input than left, got 'left'"),
    ],
)
def test_joins_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        join(**({"left": "left", "right": "right", "on": "id", "within_s": 1} | options))
    assert str(wrong.value).startswith(problem)


@pytest.mark.parametrize(
    ("reads", "problem"),
    [
        ({"left": "id long", "rigth": "id long"}, "reads: must have 'right'"),
        ({"left": "id long", "right": "id long", "x": "id long"}, "reads: must be two inputs"),
        ({"left": "id long", "right": "ident long"}, "on: there is no column 'id'"),
        ({"left": "id long", "right": "id int"}, "key: 'right' has int, but the first input long"),
    ],
)
def test_inputs_that_do_not_fit(reads: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(join("left", "right", on="id", within_s=1), [], reads)
    assert str(wrong.value).startswith(f"try_batches.{problem}")
