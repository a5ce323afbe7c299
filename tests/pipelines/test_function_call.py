"""Calls of functions: what they see, what they may return, and the stamps of their rows."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.factories import batch, operator, stamps

from penstock.errors import InputError
from penstock.pipelines.function_call import call_batch, call_producer, chunks, fit_producer
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT, parse_schema, with_event

PRODUCED = parse_schema("id long, at timestamp")
DUE = pa.array([10, 20], TIMESTAMP)


def called(function: Any, *ids: int, writes: str = "id long", resource: Any = None) -> Any:
    """What comes out for orders with these ids; the resource is opened by somebody else."""
    opens = None if resource is None else (lambda: None)
    return call_batch(operator(function, writes, resource=opens), batch(*ids), resource).get("out")


def test_the_function_does_not_see_the_stamps_and_rows_keep_theirs() -> None:
    seen = []

    def function(rows: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(rows.schema.names)
        return rows.select(["id"])

    result = called(function, 3, 5, 9)
    assert seen == [["id", "amount"]]
    assert result.schema.equals(with_event(parse_schema("id long")))
    assert result.column("id").to_pylist() == stamps(result) == [3, 5, 9]


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows.select(["id"]),
        lambda rows: pa.table({"id": rows["id"]}),
        lambda rows: {"id": rows["id"]},
        lambda rows: {"id": rows["id"].to_pylist()},
        lambda rows: {"id": rows["id"].to_numpy()},
    ],
)
def test_rows_are_returned_in_many_forms(form: Any) -> None:
    result = called(form, 1, 2)
    assert isinstance(result, pa.RecordBatch)
    assert result.column("id").to_pylist() == [1, 2]


@pytest.mark.parametrize("nothing", [None, {"id": []}, pa.table({"id": pa.array([], pa.int64())})])
def test_no_rows_are_none(nothing: Any) -> None:
    assert called(lambda _: nothing, 1, 2) is None


def test_without_rows_the_function_is_not_called() -> None:
    assert called(lambda _: pytest.fail("called")) is None


def test_the_resource_is_handed_over_if_one_is_declared() -> None:
    assert called(lambda _, model: {"id": [model]}, 1, resource=42).to_pylist()[0]["id"] == 42


def test_stamps_that_the_function_gives_are_used() -> None:
    result = called(
        lambda _: {"id": [1, 2], EVENT: pa.array([70, 80], pa.timestamp("us", "UTC"))}, 1, 2
    )
    assert stamps(result) == [70, 80]
    in_ms = called(lambda _: {EVENT: pa.array([7], pa.timestamp("ms", "UTC")), "id": [1]}, 1, 2)
    assert stamps(in_ms) == [7000]


def test_stamps_of_other_numbers_of_rows_are_estimated_by_position() -> None:
    assert stamps(called(lambda _: {"id": [0, 0]}, 10, 20, 30, 40, 50)) == [10, 30]
    assert stamps(called(lambda _: {"id": [0] * 5}, 10, 20)) == [10, 10, 10, 20, 20]


@given(
    st.lists(st.integers(0, 2**40), min_size=1, max_size=30), st.integers(min_value=1, max_value=90)
)
def test_estimated_stamps_follow_the_formula(given_stamps: list[int], rows: int) -> None:
    made = called(lambda _: {"id": [0] * rows}, *given_stamps)
    expected = [given_stamps[(j * len(given_stamps)) // rows] for j in range(rows)]
    assert made is not None and stamps(made) == expected


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"id": pa.array(["a"])}, "column 'id': expected long, found string"),
        ({"id": [1], EVENT: [None]}, "column '_event': must not be null"),
        ({"id": [1], EVENT: [7]}, "column '_event': expected timestamp"),
        ({"number": [1]}, "column 'id' (long) is missing"),
        ([{"id": 1}], "must be rows, got list"),
        (7, "must be rows, got int"),
    ],
)
def test_what_does_not_fit_names_operator_line_and_column(result: Any, problem: str) -> None:
    def wrong(rows: pa.RecordBatch) -> Any:
        return result

    with pytest.raises(InputError) as found:
        called(wrong, 1)
    assert found.value.field.startswith("wrong.")
    assert found.value.where.startswith(__file__)
    assert problem in found.value.problem


def test_what_the_function_raises_comes_through_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        called(lambda _: 1 / 0, 1)


@pytest.mark.parametrize(
    ("rows", "most", "sizes"), [(7, 3, [3, 3, 1]), (7, None, [7]), (0, 3, []), (0, None, [])]
)
def test_chunks(rows: int, most: int | None, sizes: list[int]) -> None:
    whole = batch(*range(rows))
    parts = list(chunks(whole, most))
    assert [part.num_rows for part in parts] == sizes
    assert [i for part in parts for i in part.column("id").to_pylist()] == list(range(rows))


def test_a_table_with_chunks_keeps_its_stamps_in_order() -> None:
    def function(rows: pa.RecordBatch) -> pa.Table:
        return pa.Table.from_batches([rows.slice(0, 1), rows.slice(1)]).select(["id"])

    result = called(function, 4, 5, 6)
    assert result.column(EVENT).type == TIMESTAMP and stamps(result) == [4, 5, 6]


@pytest.mark.parametrize(
    "make",
    [
        lambda first, due: pa.table({"id": [first, first + 1], "at": due}),
        lambda first, due: pa.record_batch({"id": [first, first + 1], "at": due}),
        lambda first, due: {"at": due, "id": pa.array([first, first + 1], pa.int16())},
    ],
)
def test_rows_come_in_many_forms_and_leave_in_one(make: Any) -> None:
    rows = fit_producer(make, PRODUCED)(7, DUE)
    assert isinstance(rows, pa.Table) and rows.schema.equals(PRODUCED)
    assert rows.column("id").to_pylist() == [7, 8] and rows.column("at").combine_chunks() == DUE


def test_an_error_names_the_function_and_its_line() -> None:
    def broken(first_id: int, due: pa.Array) -> Any:
        return {"id": first_id / 0}

    with pytest.raises(InputError) as wrong:
        call_producer(broken, 0, DUE)
    assert wrong.value.field == "broken"
    assert wrong.value.problem == "cannot be made: ZeroDivisionError: division by zero"
    assert wrong.value.where == f"{__file__}:{broken.__code__.co_firstlineno + 1}"


def test_rows_that_do_not_fit_name_the_column() -> None:
    def text(first_id: int, due: pa.Array) -> Any:
        return {"id": ["a", "b"], "at": due}

    with pytest.raises(InputError, match="column 'id': expected long, found string") as wrong:
        fit_producer(text, PRODUCED)(0, DUE)
    assert wrong.value.where == f"{__file__}:{text.__code__.co_firstlineno}"
