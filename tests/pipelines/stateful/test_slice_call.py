"""Calling a function for one slice, and which rows go there."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.pipelines.stateful.streams import SECOND, Stream, some, streams, table, timed

from penstock.errors import InputError
from penstock.pipelines.stateful.slice_call import call_slice, split_inputs
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.state.handle import State
from penstock.topics.hashing import hash_keys, slice_of
from penstock.topics.schema import EVENT, parse_schema

SCHEMA = parse_schema("user string, n long")


def state() -> State:
    """A state with nothing in it."""
    return State.open(parse_schema("user string"), parse_schema("n long"), slice=3)


def rows(*seconds: float) -> pa.RecordBatch:
    """One batch of one user."""
    both = timed(*seconds)
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in both.columns], both.column_names)


def call(result: Any, inputs: Any = None) -> pa.RecordBatch | None:
    """Call a function that returns this."""
    called = call_slice(lambda *_: result, inputs or {"rows": rows(1)}, state(), {"out": SCHEMA})
    return called.get("out")


def test_one_input_comes_as_it_is_and_several_by_name() -> None:
    seen = []

    def look(given: Any, state: State) -> None:
        seen.append((given, state.slice))

    one = rows(1, 2)
    assert call_slice(look, {"a": one}, state(), {"out": SCHEMA}) == {}
    assert call_slice(look, {"a": one, "b": one.slice(0, 0)}, state(), {"out": SCHEMA}) == {}
    assert seen == [(one, 3), ({"a": one, "b": one.slice(0, 0)}, 3)]


@pytest.mark.parametrize("of", [dict, pa.table, pa.record_batch])
def test_rows_are_fitted_to_the_topic(of: Any) -> None:
    columns = {
        EVENT: rows(1).column(EVENT),
        "n": pa.array([7], pa.int32()),
        "user": pa.array(["a"]),
    }
    found = call(of(columns))
    assert found is not None
    assert found.to_pylist() == [{"user": "a", "n": 7, EVENT: rows(1).column(EVENT)[0].as_py()}]
    assert found.schema.names == ["user", "n", EVENT]


def test_no_rows_are_nothing() -> None:
    assert call(None) is None
    assert call({"user": [], "n": [], EVENT: []}) is None


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ([1], "result: must be rows, got list"),
        ({"user": ["a"], "n": [1]}, "result: column '_event' is missing"),
        ({"user": ["a"], EVENT: rows(1).column(EVENT)}, "rows: column 'n' (long) is missing"),
        ({"user": ["a"], "n": [None], EVENT: [None]}, "rows: column '_event': must not be null"),
    ],
)
def test_what_does_not_fit_is_said_with_the_place_of_the_function(
    result: Any, problem: str
) -> None:
    with pytest.raises(InputError) as wrong:
        call(result)
    assert wrong.value.where.split(":")[0].endswith("test_slice_call.py")
    assert problem in str(wrong.value)


def test_what_the_function_raises_comes_through() -> None:
    def fails(given: Any, state: State) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call_slice(fails, {"rows": rows(1)}, state(), {"out": SCHEMA})


@some
@given(streams(most=60))
def test_every_row_goes_to_the_slice_of_its_key_in_its_order(stream: Stream) -> None:
    [batch] = table([row for some in stream.batches for row in some]).to_batches() or [None]
    if batch is None:
        return
    by = ("user", "page")
    slicing = Slicing(
        keys={"a": by, "b": ()}, broadcast=("c",), slices=stream.slices, state="n long"
    )
    inputs = {"a": batch, "b": batch, "c": batch.slice(0, 0)}
    parts = split_inputs(slicing, inputs)
    assert list(parts) == sorted(parts)
    numbers = slice_of(hash_keys(batch.select(by).columns), stream.slices).tolist()
    for number, part in parts.items():
        assert list(part) == ["a", "b", "c"]
        ids = batch.column("id").to_pylist()
        assert part["a"].column("id").to_pylist() == [
            id for id, place in zip(ids, numbers, strict=True) if place == number
        ]
        # without key columns everything is in the first slice
        assert part["b"].num_rows == (batch.num_rows if number == 0 else 0)
        assert part["c"].num_rows == 0
    assert set(parts) == {0, *numbers}


def test_every_slice_gets_a_broadcast_row() -> None:
    slicing = Slicing(keys={"a": ("user",)}, broadcast=("b",), slices=5, state="n long")
    parts = split_inputs(slicing, {"a": rows(), "b": rows(4)})
    assert list(parts) == [0, 1, 2, 3, 4]
    assert all(part["b"].equals(rows(4)) and not part["a"].num_rows for part in parts.values())
    assert split_inputs(slicing, {"a": rows(), "b": rows()}) == {}
    assert rows(4).column(EVENT).cast(pa.int64()).to_pylist() == [4 * SECOND]
