"""Snapshots in and out of JSON."""

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.snapshot import Snapshot
from penstock.core.snapshot_json import MEASURES, SHARES, parse_snapshot, snapshot_to_json
from penstock.core.vote_count import VoteCount
from penstock.errors import InputError

SAMPLE: dict[str, Any] = {
    "at": 30.0,
    "offered": {"source": 1000000.0},
    "operators": {
        "source": {"parallelism": 5, "input_rate": 1000.0, "busy": 0.8, "colour": ["red"]},
        "map": {"upstream": ["source"], "parallelism": 2, "queue": 3},
    },
    "note": {"by": "me"},
}

numbers = st.floats(0, 1e9)
shares = st.floats(0, 1)
names = st.text(min_size=1, max_size=5).filter(str.strip)


@st.composite
def snapshots(draw: st.DrawFn) -> dict[str, Any]:
    """Valid snapshots as parsed JSON."""
    ops = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    data: dict[str, Any] = {"at": draw(st.floats(-1e6, 1e6)), "operators": {}}
    for i, name in enumerate(ops):
        fields: dict[str, Any] = {"parallelism": draw(st.integers(1, 100))}
        fields["upstream"] = [up for up in ops[:i] if draw(st.booleans())]
        for measure in draw(st.lists(st.sampled_from(MEASURES), unique=True)):
            fields[measure] = draw(st.none() | (shares if measure in SHARES else numbers))
        if draw(st.booleans()):
            fields["sent"] = {other: draw(numbers) for other in ops if draw(st.booleans())}
        fields["x-own"] = draw(st.none() | st.lists(st.integers()))
        data["operators"][name] = fields
    data["offered"] = {name: draw(numbers) for name in ops if draw(st.booleans())}
    return data


@settings(max_examples=50)
@given(snapshots())
def test_what_is_written_reads_the_same(data: dict[str, Any]) -> None:
    snapshot = parse_snapshot(data)
    again = parse_snapshot(json.loads(json.dumps(snapshot_to_json(snapshot))))
    assert again == snapshot
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot
    assert copy.deepcopy(snapshot) == snapshot


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
keys = st.sampled_from(
    ["at", "operators", "hosts", "offered", "source", "map", "upstream", "parallelism", "busy"]
)


@given(st.lists(st.tuples(st.lists(keys, min_size=1, max_size=3), json_values), max_size=3))
def test_anything_is_either_read_or_refused_by_name(changes: list[tuple[list[str], Any]]) -> None:
    data = copy.deepcopy(SAMPLE)
    for path, value in changes:
        here = data
        for key in path[:-1]:
            here = here[key] if isinstance(here, dict) and key in here else {}
        if isinstance(here, dict):
            here[path[-1]] = value
    try:
        assert isinstance(parse_snapshot(data), Snapshot)
    except InputError as error:
        assert error.problem


def test_votes_of_replicas_are_read_and_written() -> None:
    votes = VoteCount(
        before=2, after=4, voters=2, copies=3, load=9.5, capacity=5.0, probability=1.5
    )
    operators = {"map": {"parallelism": 2, "votes": votes.to_json()}}
    snapshot = parse_snapshot({"at": 1, "operators": operators})
    assert snapshot.operators["map"].votes == votes
    assert parse_snapshot(snapshot_to_json(snapshot)) == snapshot


@pytest.mark.parametrize(
    ("votes", "field"),
    [
        ({"before": 2}, "operators.map.votes.after"),
        ({"before": 0, "after": 1}, "operators.map.votes.before"),
        ({"before": 1, "after": 1, "copies": -1}, "operators.map.votes.copies"),
        ({"before": 1, "after": 1, "probability": "x"}, "operators.map.votes.probability"),
        ([], "operators.map.votes"),
    ],
)
def test_wrong_votes_are_named(votes: Any, field: str) -> None:
    operators = {"map": {"parallelism": 1, "votes": votes}}
    with pytest.raises(InputError) as error:
        parse_snapshot({"at": 1, "operators": operators})
    assert error.value.field == field


def test_unknown_fields_are_kept() -> None:
    data = snapshot_to_json(parse_snapshot(SAMPLE))
    assert data["note"] == {"by": "me"}
    assert data["operators"]["source"]["colour"] == ["red"]


def test_a_missing_measure_is_unknown_and_not_zero() -> None:
    op = parse_snapshot(SAMPLE).operators["map"]
    assert (op.busy, op.queue) == (None, 3.0)


def test_snapshots_cannot_be_changed() -> None:
    snapshot = parse_snapshot(SAMPLE)
    with pytest.raises(TypeError):
        snapshot.operators["map"] = snapshot.operators["source"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.at = 1.0  # type: ignore[misc]
    for change in ("clear", "popitem"):
        with pytest.raises(TypeError):
            getattr(snapshot.offered, change)()


def wrong(path: str, value: Any) -> dict[str, Any]:
    """The sample with one field changed; `...` removes it."""
    data = copy.deepcopy(SAMPLE)
    *way, last = path.split("/")
    here = data
    for key in way:
        here = here[key]
    here[last] = value
    if value is ...:
        del here[last]
    return data


@pytest.mark.parametrize(
    ("path", "value", "field", "problem"),
    [
        ("at", ..., "at", "missing"),
        ("at", "soon", "at", "must be a number, got 'soon'"),
        ("at", True, "at", "must be a number, got True"),
        ("operators", ..., "operators", "missing"),
        ("operators", {}, "operators", "is empty"),
        ("operators", [], "operators", "must be an object"),
        ("operators/map", 3, "operators.map", "must be an object, got 3"),
        ("operators/map/parallelism", ..., "operators.map.parallelism", "missing"),
        ("operators/map/parallelism", 0, "operators.map.parallelism", "at least 1, got 0"),
        ("operators/map/parallelism", 1.5, "operators.map.parallelism", "a whole number"),
        ("operators/map/queue", -1, "operators.map.queue", "must be at least 0, got -1"),
        ("operators/map/busy", 80, "operators.map.busy", "must be at most 1, got 80"),
        ("operators/map/queue_growth", float("inf"), "operators.map.queue_growth", "finite"),
        ("operators/map/input_rate", float("nan"), "operators.map.input_rate", "finite"),
        ("operators/map/input_rate", 10**400, "operators.map.input_rate", "finite"),
        ("operators/map/upstream", "source", "operators.map.upstream", "a list of names"),
        ("operators/map/upstream", ["sauce"], "operators.map.upstream", "unknown upstream"),
        ("operators/source/upstream", ["map"], "operators.", "form a cycle"),
        ("operators/map/sent", {"skin": 1}, "operators.map.sent.skin", "unknown operator"),
        ("operators/ ", {"parallelism": 1}, "operators", "must not be empty"),
        ("offered", {"sorce": 5}, "offered.sorce", "unknown operator"),
        ("offered", {"source": -5}, "offered.source", "must be at least 0"),
        ("version", 2, "version", "cannot read version 2"),
        ("hosts", {"h": {}}, "hosts.h.slices", "missing"),
        ("hosts", {"h": {"slices": {"s": {}}}}, "hosts.h.slices.s.cpu", "missing"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(
    path: str, value: Any, field: str, problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_snapshot(wrong(path, value))
    assert caught.value.field.startswith(field)
    assert problem in caught.value.problem


def test_a_misspelt_field_is_pointed_out() -> None:
    with pytest.raises(InputError) as caught:
        parse_snapshot({"at": 1, "operators": {"map": {"paralelism": 3}}})
    assert caught.value.hint == "did you mean 'parallelism' by 'paralelism'?"


def test_a_slice_lives_on_one_host() -> None:
    hosts = {name: {"slices": {"M:1": {"cpu": 0.1, "memory": 1}}} for name in ("h1", "h2")}
    with pytest.raises(InputError, match="is on host 'h1' too"):
        parse_snapshot({"at": 0, "hosts": hosts})


def test_hosts_are_read_and_written() -> None:
    slices = {"AP:1": {"cpu": 0.12, "memory": 1.0, "network": 3.0}}
    data = {"at": 0.0, "hosts": {"h1": {"slices": slices, "memory_capacity": 9.0, "rack": "a"}}}
    assert snapshot_to_json(parse_snapshot(data)) == data


def test_arrivals_come_from_what_upstream_sends() -> None:
    ops = {
        "a": {"parallelism": 1, "output_rate": 100, "sent": {"b": 70, "c": 30}},
        "b": {"parallelism": 1, "upstream": ["a"], "output_rate": 28},
        "c": {"parallelism": 1, "upstream": ["a"]},
        "d": {"parallelism": 1, "upstream": ["b", "c"]},
        "e": {"parallelism": 1, "upstream": ["b"]},
    }
    snapshot = parse_snapshot({"at": 0, "offered": {"a": 50, "e": 2}, "operators": ops})
    assert [snapshot.arrival_rate(name) for name in "abcde"] == [50, 70, 30, None, 30]
