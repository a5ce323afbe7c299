"""Matchers with their state: changes, acks, and the cache of what they built."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from tests.pubsub.oracle import EVERYTHING, Traffic, make_key
from tests.pubsub.test_matcher import key_bytes

from penstock.pubsub.broker import PublishRequest, SubscribeRequest
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.language.box_json import encode_boxes
from penstock.pubsub.language.boxes import compile_boxes
from penstock.pubsub.local_broker import LocalBroker
from penstock.pubsub.operators.match import MatchPoint
from penstock.pubsub.operators.subscription_index import SubscriptionLayout
from penstock.pubsub.operators.topics import (
    ACKS,
    PARTIAL,
    PUBLICATIONS,
    SCHEMAS,
    SUBSCRIPTIONS,
    publication_columns,
    unpack_numbers,
)
from penstock.pubsub.pipeline import build_pipeline
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import parse_schema, with_event

LAYOUT = SubscriptionLayout(paths=("a",), is_encrypted=False, backend=Backend.NUMPY)
KEY, VALUES = parse_schema("number long"), parse_schema("version long, content binary")


def make_batch(schema: str, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = with_event(parse_schema(schema))
    stamped = [{**row, "_event": 5} for row in rows]
    arrays = [
        pa.array([row[field.name] for row in stamped], pa.int64()).cast(TIMESTAMP)
        if field.name == "_event"
        else pa.array([row[field.name] for row in stamped], field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def inputs(changes: list[tuple[int, str | None]], values: list[float]) -> Mapping[str, Any]:
    """Changes by number, with a predicate or without one; publications of one attribute."""
    subscriptions = [
        {
            "number": number,
            "is_active": text is not None,
            "content": encode_boxes(compile_boxes(text)) if text else None,
        }
        for number, text in changes
    ]
    publications = [
        {"payload": b"event", "code_0": 4, "number_0": value, "text_0": None} for value in values
    ]
    return {
        SUBSCRIPTIONS: make_batch(SCHEMAS[SUBSCRIPTIONS], subscriptions),
        PUBLICATIONS: make_batch(publication_columns(1, is_encrypted=False), publications),
    }


def open_state(number: int = 0, first: int = 100, layers: Any = (), token: str = "") -> State:
    starts = {PUBLICATIONS: first, SUBSCRIPTIONS: 0}
    return State.open(KEY, VALUES, layers, slice=number, token=token, input_starts=starts)


def numbers_of(rows: Mapping[str, Any]) -> list[list[int]]:
    return [unpack_numbers(data).tolist() for data in rows["numbers"].to_pylist()]


def test_changes_come_before_all_publications_of_their_batch() -> None:
    changes = [(1, "a > 1"), (2, "a > 2"), (1, None), (3, "a > 9"), (3, None), (3, "a > 0")]
    results = MatchPoint(LAYOUT)(inputs(changes, [1.5, 2.5]), open_state())
    assert numbers_of(results[PARTIAL]) == [[3], [2, 3]] or numbers_of(results[PARTIAL]) == [
        [3],
        [3, 2],
    ]
    acks = results[ACKS]
    assert acks["number"].to_pylist() == [1, 2, 1, 3, 3, 3]
    assert acks["is_active"].to_pylist() == [True, True, False, True, False, True]
    assert acks["publication"].to_pylist() == [100] * 6


def test_every_slice_has_a_row_for_every_publication_and_the_first_has_the_payload() -> None:
    for number in (0, 3):
        rows = MatchPoint(LAYOUT)(inputs([], [1.0, 2.0, 3.0]), open_state(number, first=7))[PARTIAL]
        assert rows["publication"].to_pylist() == [7, 8, 9]
        assert rows["slice"].to_pylist() == [number] * 3
        assert numbers_of(rows) == [[], [], []]
        assert rows["payload"].to_pylist() == [b"event" if number == 0 else None] * 3


def test_a_batch_without_publications_acknowledges() -> None:
    results = MatchPoint(LAYOUT)(inputs([(4, "a = 1")], []), open_state())
    assert list(results) == [ACKS]


def test_a_matcher_is_kept_for_the_same_state_only() -> None:
    point = MatchPoint(LAYOUT)
    state = open_state()
    point(inputs([(1, "a > 1")], []), state)
    layer = state.changes()
    assert layer is not None
    first = open_state(layers=[layer], token="one")
    assert numbers_of(point(inputs([], [2.0]), first)[PARTIAL]) == [[1]]
    # the same files: not read again
    again = open_state(token="one")
    assert numbers_of(point(inputs([], [2.0]), again)[PARTIAL]) == [[1]]
    # other files, such as after a retry or a move
    other = open_state(token="two")
    assert numbers_of(point(inputs([], [2.0]), other)[PARTIAL]) == [[]]
    # a change is applied to the state, not to the matcher that is kept
    changed = open_state(layers=[layer], token="one")
    assert numbers_of(point(inputs([(1, None)], [2.0]), changed)[PARTIAL]) == [[]]
    assert numbers_of(point(inputs([], [2.0]), first)[PARTIAL]) == [[1]]


def test_slices_do_not_share_a_matcher() -> None:
    point = MatchPoint(LAYOUT)
    for number in (0, 1):
        state = open_state(number, token="same")
        point(inputs([(number, "a > 0")], []), state)
        layer = state.changes()
        later = open_state(number, layers=[layer], token="same")
        assert numbers_of(point(inputs([], [1.0]), later)[PARTIAL]) == [[number]]


@given(st.lists(st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=150), max_size=8))
def test_any_changes_give_the_matcher_of_the_state(
    batches: list[list[tuple[int, bool]]],
) -> None:
    """Batches of changes with a publication each, against a dictionary; numbers come again."""
    point = MatchPoint(LAYOUT)
    active: dict[int, int] = {}
    layers: list[Any] = []
    for place, batch in enumerate(batches):
        changes: list[tuple[int, str | None]] = [
            (number, f"a = {place}" if is_active else None) for number, is_active in batch
        ]
        for number, is_active in batch:
            active.pop(number, None)
            if is_active:
                active[number] = place
        state = open_state(layers=layers)
        values = [float(value) for value in range(place + 1)]
        rows = point(inputs(changes, values), state)[PARTIAL]
        expected = [sorted(n for n, at in active.items() if at == v) for v in values]
        assert [sorted(numbers) for numbers in numbers_of(rows)] == expected
        if (layer := state.changes()) is not None:
            layers = [layer, *layers]


# --- nothing secret


def secrets(traffic: Traffic) -> set[bytes]:
    """The key, and everything that publishers and subscribers have hidden."""
    texts = [*traffic.predicates.values(), "price", "volume", "symbol"]
    return key_bytes(traffic.key) | {text.encode() for text in texts if len(text) > 5}


@pytest.fixture
def traffic() -> Traffic:
    return Traffic(make_key("aspe"), seed=11)


def test_operators_are_shipped_without_keys(traffic: Traffic) -> None:
    pipeline = build_pipeline(traffic.space)
    functions = [operator.function for operator in pipeline.operators.values()]
    shipped = b"".join(cloudpickle.dumps(function) for function in functions)
    assert [part for part in key_bytes(traffic.key) if part in shipped] == []
    assert pickle.loads(pickle.dumps(functions[1])) == functions[1]


def test_topics_of_an_encrypted_space_hold_no_value(tmp_path: Path, traffic: Traffic) -> None:
    with LocalBroker(traffic.space, tmp_path) as broker:
        requests = [traffic.subscribe(EVERYTHING)]
        requests += traffic.draw_requests(publications=50, changes=50)
        broker.submit(requests)
        assert len(broker.read_notices(0)[0]) == 50
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    data = b"".join(path.read_bytes() for path in files)
    found = [request.content for request in requests if isinstance(request, PublishRequest)]
    assert all(content in data for content in found)  # the search works
    assert [part for part in secrets(traffic) if part in data] == []


def test_the_same_search_finds_values_of_a_plain_space(tmp_path: Path) -> None:
    traffic = Traffic(make_key("plain"), seed=11)
    with LocalBroker(traffic.space, tmp_path) as broker:
        broker.submit([SubscribeRequest(number=1, content=b"price BETWEEN 137.37 AND 138")])
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"137.37" in data
