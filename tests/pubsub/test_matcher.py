"""Matchers, topics and state have no key and no value of an encrypted space."""

import json
import pickle
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.pubsub.broker import PublishRequest, Request, SubscribeRequest
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.language.box_json import encode_boxes
from penstock.pubsub.language.boxes import compile_boxes
from penstock.pubsub.local_broker import LocalBroker
from penstock.pubsub.local_operator import LocalOperator
from penstock.pubsub.matcher import build_aspe_matcher, build_plain_matcher
from penstock.pubsub.payload import encrypt_payload
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.cell_ranges import TextAxis
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import parse_space
from penstock.pubsub.spaces.space_key import SpaceKey, make_space_key
from penstock.pubsub.spaces.wire import encode_tests, encode_vectors
from penstock.state.sorted_layer import SortedLayer

ATTRIBUTES = {"price": {"low": 0, "high": 500, "step": 0.01}, "symbol": {"text": True}}
SUBSCRIPTIONS = ["price BETWEEN 137.37 AND 137.41", "symbol = 'SECRETIVE' AND price > 41.43"]
PUBLICATIONS = [{"price": 137.39, "symbol": "SECRETIVE"}, {"price": 41.43, "symbol": "OTHERWISE"}]
VALUES = [137.37, 137.39, 137.41, 41.43]
TEXTS = ["SECRETIVE", "OTHERWISE", "price", "symbol"]


def make_key(scheme: str) -> SpaceKey:
    space = parse_space({"format": 1, "scheme": scheme, "attributes": ATTRIBUTES})
    return make_space_key(space, np.random.default_rng(0).bytes)


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """The bytes of a file of a topic, without compression."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def value_bytes(key: SpaceKey) -> set[bytes]:
    """Every form that values have on the side of the client."""
    cells = [round(value * 100) + 1 for value in VALUES]
    size = 50_002
    scaled = [(2 * cell - (size - 1)) / size for cell in cells]
    bounds = [(2 * cell - size) / size for cell in cells]
    forms = {struct.pack("<d", value) for value in [*VALUES, *scaled, *bounds]}
    if key.aspe is not None:
        axis = TextAxis("symbol", key.aspe.secret)
        cells += [axis.find_cell((4, text)) for text in TEXTS[:2]]
    return forms | {struct.pack("<q", cell) for cell in cells} | {t.encode() for t in TEXTS}


def key_bytes(key: SpaceKey) -> set[bytes]:
    """Every number and every secret of a key."""
    assert key.aspe is not None
    arrays = (key.aspe.left, key.aspe.scales, key.aspe.right)
    numbers = {struct.pack("<d", value) for array in arrays for value in array.ravel()}
    return numbers | {key.aspe.secret, key.payload_key}


def matcher_bytes(key: SpaceKey) -> bytes:
    """Everything that the matcher of a space gets: its subscriptions and publications."""
    encoder = key.make_encoder()
    batch = encoder.encode_publications(PUBLICATIONS)
    if isinstance(encoder, AspeEncoder):
        vectors = {n: encoder.encode_subscription(text) for n, text in enumerate(SUBSCRIPTIONS)}
        matcher: object = build_aspe_matcher(vectors, len(ATTRIBUTES))
    else:
        boxes = {n: encoder.encode_subscription(text) for n, text in enumerate(SUBSCRIPTIONS)}
        matcher = build_plain_matcher(boxes, encoder.space.paths)
    return pickle.dumps(matcher) + to_bytes(batch)


def test_an_encrypted_matcher_has_no_key_and_no_value() -> None:
    key = make_key("aspe")
    data = matcher_bytes(key)
    assert [part for part in key_bytes(key) | value_bytes(key) if part in data] == []


def test_the_same_search_finds_values_of_a_plain_space() -> None:
    key = make_key("plain")
    data = matcher_bytes(key)
    assert struct.pack("<d", 137.39) in data
    assert b"SECRETIVE" in data


def make_requests(key: SpaceKey) -> list[Request]:
    """What clients send: all subscriptions, then all publications with encrypted payloads."""
    encoder = key.make_encoder()
    contents = [text.encode() for text in SUBSCRIPTIONS]
    events = [json.dumps(event).encode() for event in PUBLICATIONS]
    vectors = events
    if isinstance(encoder, AspeEncoder):
        contents = [encode_tests(encoder.encode_subscription(text)) for text in SUBSCRIPTIONS]
        vectors = encode_vectors(encoder.encode_publications(PUBLICATIONS))
        events = [encrypt_payload(key.payload_key, event) for event in events]
    return [
        *(SubscribeRequest(number=n, content=content) for n, content in enumerate(contents)),
        *(
            PublishRequest(content=vector, payload=event)
            for vector, event in zip(vectors, events, strict=True)
        ),
    ]


def service_bytes(key: SpaceKey, directory: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """All rows of all topics, and the state of all operators."""
    parts: list[bytes] = []
    run, keep = LocalOperator.run, LocalOperator._keep

    def run_and_note(
        self: LocalOperator, inputs: Mapping[str, pa.RecordBatch]
    ) -> dict[str, pa.RecordBatch]:
        outputs = run(self, inputs)
        parts.extend(to_bytes(rows) for rows in [*inputs.values(), *outputs.values()])
        return outputs

    def keep_and_note(self: LocalOperator, number: int, changes: SortedLayer | None) -> None:
        chunks = changes.chunks if changes is not None else ()
        parts.extend(to_bytes(chunk.rows) for chunk in chunks)
        keep(self, number, changes)

    monkeypatch.setattr(LocalOperator, "run", run_and_note)
    monkeypatch.setattr(LocalOperator, "_keep", keep_and_note)
    requests = make_requests(key)
    with LocalBroker(key.space, directory) as broker:
        broker.submit(requests)
        assert [notice.subscriptions for notice in broker.read_notices(0)[0]] == [(0, 1)]
    return b"".join(parts)


def test_topics_and_state_of_an_encrypted_space_have_no_key_and_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key("aspe")
    data = service_bytes(key, tmp_path, monkeypatch)
    assert [part for part in key_bytes(key) | value_bytes(key) if part in data] == []


def test_the_same_search_finds_values_in_topics_and_state_of_a_plain_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = service_bytes(make_key("plain"), tmp_path, monkeypatch)
    stored = encode_boxes(compile_boxes(SUBSCRIPTIONS[0]))
    assert all(part in data for part in (struct.pack("<d", 137.39), b"SECRETIVE", stored))


def test_the_same_search_finds_the_key_of_an_encoder() -> None:
    key = make_key("aspe")
    data = pickle.dumps((key.aspe, key.payload_key))
    assert all(part in data for part in key_bytes(key))


def test_the_module_of_matchers_does_not_load_keys() -> None:
    code = "import sys, penstock.pubsub.matcher; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "penstock.pubsub.kernels.half_spaces" in done.stdout
    assert "penstock.pubsub.spaces" not in done.stdout


def test_matching_works_without_numba() -> None:
    code = """
import sys
sys.modules["numba"] = None
from tests.pubsub.test_matcher import *
for scheme in ("aspe", "plain"):
    encoder = make_key(scheme).make_encoder()
    encoded = {n: encoder.encode_subscription(text) for n, text in enumerate(SUBSCRIPTIONS)}
    build = build_aspe_matcher if scheme == "aspe" else build_plain_matcher
    matcher = build(encoded, 2 if scheme == "aspe" else encoder.space.paths)
    print(matcher.match(encoder.encode_publications(PUBLICATIONS)).to_pylist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["[[0, 1], []]"] * 2, "")


def test_a_matcher_that_was_pickled_matches() -> None:
    encoder = make_key("aspe").make_encoder()
    assert isinstance(encoder, AspeEncoder)
    vectors = {n: encoder.encode_subscription(text) for n, text in enumerate(SUBSCRIPTIONS)}
    matcher = pickle.loads(pickle.dumps(build_aspe_matcher(vectors, 2, Backend.NUMPY)))
    assert matcher.match(encoder.encode_publications(PUBLICATIONS)).to_pylist() == [[0, 1], []]


def test_publications_of_another_scheme_are_refused() -> None:
    matcher = build_aspe_matcher({}, 2)
    plain = PlainEncoder(make_key("plain").space).encode_publications(PUBLICATIONS)
    with pytest.raises(InputError, match="vectors of 6 numbers"):
        matcher.match(plain)
    encrypted = make_key("aspe").make_encoder().encode_publications(PUBLICATIONS)
    with pytest.raises(InputError, match="code, number and text of 2 attributes"):
        build_plain_matcher({}, ["price", "symbol"]).match(encrypted)


@pytest.mark.parametrize(
    ("values", "size", "problem"),
    [
        ([137.39] * 6, 6, "no encrypted vector"),
        ([1.0], 1, "vectors of 6 numbers"),
        ([float("nan")] * 6, 6, "no encrypted vector"),
    ],
)
def test_vectors_that_no_client_has_encrypted_are_refused(
    values: list[float], size: int, problem: str
) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), size)
    with pytest.raises(InputError, match=problem):
        build_aspe_matcher({}, 2).match(pa.record_batch([vectors], ["vector"]))


def test_a_part_of_a_batch_is_matched_alone() -> None:
    encoder = make_key("aspe").make_encoder()
    assert isinstance(encoder, AspeEncoder)
    vectors = {n: encoder.encode_subscription(text) for n, text in enumerate(SUBSCRIPTIONS)}
    batch = encoder.encode_publications(PUBLICATIONS * 3)
    matcher = build_aspe_matcher(vectors, 2, Backend.NUMPY)
    assert matcher.match(batch.slice(3, 2)).to_pylist() == [[], [0, 1]]
    assert matcher.match(batch.slice(3, 0)).to_pylist() == []
