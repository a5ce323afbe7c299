"""How the state of an operator is cut into slices."""

from typing import Any

import pytest

from penstock.errors import InputError
from penstock.pipelines.stateful.slice_options import Slicing, keys_of, state_schemas
from penstock.topics.schema import parse_schema, schema_text

BIDS = parse_schema("bidder long, price double, tags array<string>, at timestamp")
PEOPLE = parse_schema("id long not null, name string, at timestamp")
SCHEMAS = {"bids": BIDS, "people": PEOPLE}


def slicing(**options: Any) -> Slicing:
    """One input by its key."""
    return Slicing(**({"keys": {"bids": ("bidder",)}, "state": "n long"} | options))


def test_keys_come_from_the_first_input_and_from_the_state() -> None:
    both = slicing(
        keys={"people": ("id",), "bids": ("bidder",)}, state_key="start timestamp", state="n long"
    )
    key, values = state_schemas(both, {"bids": BIDS, "people": PEOPLE})
    assert schema_text(key) == "id long, start timestamp"
    assert schema_text(values) == "n long"


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ({"slices": 0}, "slices", "must be a whole number from 1 to 65536, got 0"),
        ({"slices": 1.5}, "slices", "must be a whole number from 1 to 65536, got 1.5"),
        ({"slices": True}, "slices", "must be a whole number from 1 to 65536, got True"),
        ({"delay_s": -1}, "delay_s", "must be seconds, at least 0, got -1"),
        ({"delay_s": float("nan")}, "delay_s", "must be seconds, at least 0, got nan"),
        ({"ttl_s": 0}, "ttl_s", "must be seconds, above 0, got 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        slicing(**options)
    assert (wrong.value.field, wrong.value.problem) == (field, problem)


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ({"keys": {"bids": ("bider",)}}, "key", "there is no column 'bider'"),
        ({"keys": {"bids": ("tags",)}}, "key", "column 'tags' is array<string>, which cannot be"),
        ({"keys": {"bids": ()}}, "key", "must name a column"),
        ({"time": "when"}, "time", "there is no column 'when'"),
        ({"time": "price"}, "time", "column 'price' must be a timestamp, got double"),
        ({"state": "n lon"}, "state", "has no type 'lon': 'n lon'"),
        ({"state_key": "start"}, "state_key", "has no type ''"),
        ({"state": "bidder long"}, "state", "column 'bidder' is there twice"),
        ({"state_key": "n long"}, "state", "column 'n' is there twice"),
        (
            {"keys": {"bids": ("bidder",), "people": ("name",)}},
            "key",
            "'people' has string, but the first input long",
        ),
        (
            {"keys": {"bids": ("bidder",), "people": ("id",)}, "late_to": "late"},
            "late_to",
            "one topic cannot take rows of inputs that differ: column 'bidder' (long) is missing",
        ),
    ],
)
def test_what_does_not_fit_the_inputs(options: dict[str, Any], field: str, problem: str) -> None:
    made = slicing(**options)
    with pytest.raises(InputError) as wrong:
        state_schemas(made, {topic: SCHEMAS[topic] for topic in made.inputs})
    assert wrong.value.field == field
    assert wrong.value.problem.startswith(problem)


def test_every_input_has_a_key_or_is_broadcast() -> None:
    with pytest.raises(InputError, match="key: says nothing about 'people'"):
        state_schemas(slicing(), SCHEMAS)
    with pytest.raises(InputError, match="key: 'bids' is not read"):
        state_schemas(slicing(), {"people": PEOPLE})
    state_schemas(slicing(broadcast=("people",)), SCHEMAS)


def test_late_rows_of_inputs_that_are_alike_fit_one_topic() -> None:
    both = slicing(keys={"a": ("bidder",), "b": ("bidder",)}, late_to="late")
    state_schemas(both, {"a": BIDS, "b": BIDS})


@pytest.mark.parametrize(
    ("key", "broadcast", "field", "problem"),
    [
        ("id", ("rules",), "broadcast", "'rules' is not read"),
        ("id", ("a", "b"), "broadcast", "must leave an input that has a key"),
        ({"a": "id"}, (), "key", "says nothing about 'b'"),
        ({"a": "id", "c": "id"}, ("b",), "key", "'c' is not an input with a key"),
        ((), ("b",), "key", "must name a column"),
    ],
)
def test_keys_that_do_not_fit_what_is_read(
    key: Any, broadcast: tuple[str, ...], field: str, problem: str
) -> None:
    with pytest.raises(InputError) as wrong:
        keys_of(key, ["a", "b"], broadcast)
    assert (wrong.value.field, wrong.value.problem) == (field, problem)


def test_a_broadcast_input_has_no_key() -> None:
    assert keys_of(["x", "y"], ["a", "b"], ["b"]) == {"a": ("x", "y")}
