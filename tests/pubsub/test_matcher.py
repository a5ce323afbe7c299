"""The matching side has no key and no value of an encrypted space."""

import pickle
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.matcher import build_aspe_matcher, build_plain_matcher
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.cell_ranges import TextAxis
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import parse_space
from penstock.pubsub.spaces.space_key import SpaceKey, make_space_key

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
