"""Top-k by key and window."""

from datetime import UTC, datetime
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
)

from penstock.errors import InputError
from penstock.pipelines.stateful import top, try_batches

#: Rows without a stamp come before it.
_LATER = datetime(2030, 1, 1, tzinfo=UTC)


@some
@given(
    streams(),
    st.sampled_from([1, 2, 5, 100]),
    st.sampled_from([3, 20]),
    st.sampled_from(["price", "weight", "user"]),
    st.sampled_from([(), ("page",)]),
)
def test_the_largest_of_each_window(
    sql: Sql, stream: Stream, k: int, size_s: int, of: str, by: tuple[str, ...]
) -> None:
    ready = top(by, k=k, of=of, size_s=size_s, time="at")
    tried = try_batches(ready, stream.flushed, COLUMNS, **stream.options)
    size = size_s * SECOND
    good, late = judged(stream, lambda row: row["t"] // size * size + size)
    partition = ", ".join((*by, f"t // {size}"))
    query = f"""
        select page, t // {size} * {size} as s, s + {size}, row_number() over ranks as place,
            id, "user", price, weight, t, e
        from rows where "{of}" is not null
        window ranks as (partition by {partition} order by "{of}" desc, id)
        qualify place <= {k}
    """
    names = ("page", "start", "end", "rank", "id", "user", "price", "weight", "at", "_event")
    found = [row for output in tried.outputs for row in shown(output, *names)]
    assert sorted(found, key=repr) == sql(query, rows=good)
    assert ids(tried.late) == late
    assert tried.state.num_rows == 1


def test_a_window_is_told_in_the_order_of_ranks() -> None:
    rows = [{"id": n, "of": (7 * n) % 100} for n in range(100)]
    batches = [rows[:50], rows[50:], [{"id": -1, "of": 0, "_event": _LATER}], []]
    tried = try_batches(top(k=90, of="of", size_s=10), batches, "id int, of int")
    assert [row["of"] for row in tried.rows] == list(range(99, 9, -1))
    assert [row["rank"] for row in tried.rows] == list(range(1, 91))


def test_what_is_no_number_has_no_rank() -> None:
    rows = [{"of": value} for value in (1.0, float("nan"), None, float("-inf"))]
    batches = [rows, [{"of": 0.0, "_event": _LATER}], []]
    tried = try_batches(top(k=9, of="of", size_s=10), batches, "of double")
    assert [row["of"] for row in tried.rows] == [1.0, float("-inf")]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_whole_number(k: Any) -> None:
    with pytest.raises(InputError, match="k: must be a whole number of at least 1"):
        top(k=k, of="price", size_s=1)


@pytest.mark.parametrize(
    ("options", "columns", "problem"),
    [
        ({"of": "pric"}, COLUMNS, "try_batches.of: there is no column 'pric'"),
        ({"of": "price", "by": "price"}, COLUMNS, "try_batches.of: column 'price' is the key"),
        ({"of": "x"}, "x array<int>", "try_batches.of: column 'x' is array<int>, which has no"),
        ({"of": "rank"}, "rank int", "try_batches.reads: column 'rank' is one that the output"),
    ],
)
def test_columns_that_cannot_be_ranked(options: dict[str, Any], columns: str, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(top(k=1, size_s=1, **options), [], columns)
    assert str(wrong.value).startswith(problem)
