"""Counts and sums by key."""

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.pipelines.stateful.streams import (
    COLUMNS,
    Sql,
    Stream,
    shown,
    some,
    streams,
    table,
    timed,
)

from penstock.errors import InputError
from penstock.pipelines.stateful import counts, try_batches


@some
@given(streams())
def test_each_batch_tells_the_new_totals_of_the_keys_in_it(sql: Sql, stream: Stream) -> None:
    ready = counts(by=("user", "page"), sums=("price", "weight"))
    tried = try_batches(ready, list(map(table, stream.batches)), COLUMNS, **stream.options)
    rows = [row | {"batch": n} for n, batch in enumerate(stream.batches) for row in batch]
    running = """
        with each as (
            select "user", page, batch, count(*) c, sum(price) p, sum(weight) w, max(e) e
            from rows group by "user", page, batch
        ), summed as (
            select "user", page, batch, e, sum(c) over before c, sum(p) over before p,
                sum(w) over before w
            from each window before as (partition by "user", page order by batch)
        )
        select "user", page, c::bigint, p::bigint, w, e from summed where batch = {}
    """
    for number, output in enumerate(tried.outputs):
        found = shown(output, "user", "page", "n", "sum_price", "sum_weight", "_event")
        assert found == sql(running.format(number), rows=rows)
    assert tried.late == ([],) * len(stream.batches)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [0.0, -0.0, float("nan"), float("nan"), None]),
        ("float", [0.5, 0.5, None, None, 1.5]),
        ("boolean", [True, False, None, True, None]),
        ("byte", [-1, 1, None, -1, 1]),
        ("decimal(20,2)", [Decimal("1.10"), Decimal("1.10"), None, Decimal("2.00"), None]),
        ("date", [date(2024, 1, 1), date(2024, 1, 1), None, date(1969, 1, 1), None]),
        ("binary", [b"", None, b"\x00", b"", None]),
        ("string", ["", None, "\x00", "", "a"]),
    ],
)
@pytest.mark.parametrize("slices", [1, 7])
def test_keys_of_all_kinds(kind: str, values: list[Any], slices: int) -> None:
    rows = [{"key": value} for value in values]
    batches = [rows[:2], rows[2:], rows]
    tried = try_batches(counts(by="key"), batches, f"key {kind}", slices=slices)
    totals: dict[str, int] = {}
    for row in tried.rows:
        totals[repr(row["key"]).replace("-0.0", "0.0")] = row["n"]
    expected: dict[str, int] = {}
    for value in values:
        name = repr(value).replace("-0.0", "0.0")
        expected[name] = expected.get(name, 0) + 2
    assert totals == expected


def test_sums_take_wide_numbers_and_skip_nulls() -> None:
    rows = [{"k": "a", "x": 2**31 - 1, "y": None}, {"k": "a", "x": 1, "y": None}]
    ready = counts(by="k", sums=("x", "y"))
    tried = try_batches(
        ready, [rows, [{"k": "a", "x": None, "y": 0.5}]], "k string, x int, y float"
    )
    assert tried.rows == [
        {"k": "a", "n": 2, "sum_x": 2**31, "sum_y": None},
        {"k": "a", "n": 3, "sum_x": 2**31, "sum_y": 0.5},
    ]
    assert tried.outputs[0].schema.field("sum_x").type == pa.int64()
    assert tried.outputs[0].schema.field("sum_y").type == pa.float64()


def test_counts_are_forgotten_after_their_time_to_live() -> None:
    batches = [timed(0), timed(0), timed(100, user="bob"), timed(101)]
    tried = try_batches(counts(by="user"), batches, "user string", ttl_s=10)
    assert [row["n"] for row in tried.rows] == [1, 2, 1, 1]


@pytest.mark.parametrize(
    ("by", "sums", "problem"),
    [
        ("usr", (), "rows.by: there is no column 'usr'"),
        ("user", "pric", "rows.sums: there is no column 'pric'"),
        ("user", "user", "rows.sums: column 'user' is string, which cannot be summed"),
    ],
)
def test_columns_that_are_not_there(by: str, sums: Any, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(counts(by=by, sums=sums), [], COLUMNS)
    assert str(wrong.value).startswith(problem.replace("rows", "try_batches"))
    assert wrong.value.hint


def test_a_column_that_the_output_adds_cannot_be_a_key() -> None:
    with pytest.raises(InputError, match="column 'n' is one that the output adds"):
        try_batches(counts(by="n"), [], "n long")


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ((), "by: must name a column"),
        (("a", "a"), "by: names a column twice: a, a"),
        ((7,), "by: must name columns, got 7"),
        ("", "by: must name columns, got ''"),
    ],
)
def test_keys_that_name_nothing(by: Any, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        counts(by=by)
    assert str(wrong.value) == problem
