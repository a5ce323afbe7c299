"""Trying functions with state on batches."""

import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.stateful.streams import COLUMNS, SECOND, timed

from penstock.errors import InputError
from penstock.pipelines.stateful import counts, distinct, join, sessions, top, try_batches, windows
from penstock.pipelines.stateful.ready_function import Ready
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT, parse_schema

READY = [
    counts("user", sums="price"),
    windows("user", size_s=10, every_s=3, time="at"),
    sessions(("user", "page"), gap_s=5),
    distinct("user", within_s=5),
    top("user", k=3, of="price", size_s=5),
    join("left", "right", on="user", within_s=(0, 3)),
]


@pytest.mark.parametrize("ready", READY, ids=lambda ready: type(ready).__name__)
def test_ready_functions_can_be_sent_to_other_processes(ready: Ready) -> None:
    assert pickle.loads(pickle.dumps(ready)) == ready


@pytest.mark.parametrize("ready", READY, ids=lambda ready: type(ready).__name__)
def test_ready_functions_say_what_they_need_and_what_they_give(ready: Ready) -> None:
    is_join = type(ready).__name__ == "Join"
    topics = ("left", "right") if is_join else ("clicks",)
    schemas = {topic: parse_schema(COLUMNS) for topic in topics}
    slicing = ready.slicing(schemas, slices=7, delay_s=3, late_to="late")
    assert slicing.inputs == topics
    assert (slicing.slices, slicing.delay_us, slicing.late_to) == (7, 3 * SECOND, "late")
    assert slicing.time == ready.time
    assert parse_schema(slicing.state)
    assert EVENT not in ready.output_schema(schemas).names
    if not is_join:
        with pytest.raises(InputError, match="reads: must be one input for"):
            ready.slicing({"a": schemas["clicks"], "b": schemas["clicks"]})


def remind(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
    """Tell of each user five seconds after the row that set the timer."""
    due = state.due()
    stamps = batch.column(EVENT).cast(pa.int64()).to_numpy()
    state.put(batch.select(["user"]), pa.array(stamps + 5 * SECOND))
    return {"user": due.column("user"), EVENT: due.column("_timer").cast(TIMESTAMP)}


def test_a_slice_is_called_for_timers_without_rows() -> None:
    slicing = Slicing(keys={"rows": ("user",)}, state="", slices=7)
    batches = [timed(0), timed(10, user="bob"), timed(), timed()]
    tried = try_batches(remind, batches, "user string", "user string", slicing)
    assert [[row["user"] for row in out.to_pylist()] for out in tried.outputs] == [
        [],
        [],
        ["ann"],
        [],
    ]
    assert tried.watermark == 10 * SECOND
    assert sorted(tried.state.column("user").to_pylist()) == ["ann", "bob"]


def test_rules_for_all_slices() -> None:
    def priced(given: Mapping[str, pa.RecordBatch], state: State) -> dict[str, Any] | None:
        """Remember the last rate, and apply it to the rows of the slice."""
        if given["rates"].num_rows:
            rate = given["rates"].column("rate")[-1:]
            state.put({"one": pa.array([0]), "rate": rate})
        known = state.get({"one": pa.array([0] * given["sales"].num_rows, pa.int64())})
        sales = given["sales"]
        return {"user": sales["user"], "rate": known["rate"], EVENT: sales[EVENT]}

    slicing = Slicing(
        keys={"sales": ()}, broadcast=("rates",), state_key="one long", state="rate int", slices=4
    )
    reads = {"sales": "user string", "rates": "rate int"}
    batches = [
        {"rates": [{"rate": 2}], "sales": [{"user": "ann"}]},
        {"sales": [{"user": "bob"}]},
        {"rates": [{"rate": 3}]},
        {"sales": [{"user": "ann"}]},
    ]
    tried = try_batches(priced, batches, reads, "user string, rate int", slicing)
    assert [row["rate"] for row in tried.rows] == [2, 2, 3]
    # every slice knows it
    assert tried.state.column("rate").to_pylist() == [3, 3, 3, 3]


def test_a_broadcast_input_does_not_hold_the_watermark_back() -> None:
    slicing = Slicing(keys={"a": ("user",)}, broadcast=("b",), state="n long", delay_s=1)
    reads = {"a": "user string", "b": "user string"}
    batches = [{"a": timed(9), "b": timed(1)}, {"b": timed(99)}]
    tried = try_batches(lambda *_: None, batches, reads, "user string", slicing)
    assert tried.watermark == 8 * SECOND


def test_levels_are_merged_when_there_are_many_batches() -> None:
    batches = [[{"id": n % 7}, {"id": n}] for n in range(200)]
    tried = try_batches(counts("id"), batches, "id long", slices=2)
    totals = {row["id"]: row["n"] for row in tried.state.to_pylist()}
    expected: dict[int, int] = {}
    for row in (row for batch in batches for row in batch):
        expected[row["id"]] = expected.get(row["id"], 0) + 1
    assert totals == expected


@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        ([[], [{"idd": 1}]], "try_batches.batches[1].rows: column 'idd' (long) is not expected"),
        ([[{"id": "x"}]], "try_batches.batches[0].rows: column 'id': expected long, found string"),
        ([{"ids": []}], "try_batches.batches[0]: there is no input 'ids'"),
    ],
)
def test_batches_that_do_not_fit(batches: Any, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        try_batches(counts("id"), batches, "id long")
    assert str(wrong.value).startswith(problem)


def test_a_function_of_ones_own_needs_words() -> None:
    with pytest.raises(
        InputError, match="writes: give the columns that it writes, and its slicing"
    ):
        try_batches(remind, [], "user string")


def test_tables_and_batches_are_rows_too() -> None:
    one = timed(1, 2)
    tried = try_batches(counts("user"), [one, one.to_batches()[0]], "user string")
    assert [row["n"] for row in tried.rows] == [2, 4]
    assert EVENT in tried.rows[0]
