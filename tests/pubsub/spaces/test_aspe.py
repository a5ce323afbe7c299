"""The scheme aspe: the worked example, and answers equal to those on plain values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.factories import brute_force, draw_ranges, make_encoder, neighbours

from penstock.errors import InputError
from penstock.pubsub.bench.load import index_cells
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.bitmap_match import match_positions
from penstock.pubsub.kernels.half_space_match import match_points
from penstock.pubsub.kernels.half_spaces import HalfSpaces, lay_out_tiles, vector_size
from penstock.pubsub.kernels.match_lists import MatchLists
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.matcher import build_aspe_matcher
from penstock.pubsub.spaces.aspe import AspeEncoder, lay_out_points, lay_out_tests
from penstock.pubsub.spaces.aspe_key import make_aspe_key
from penstock.pubsub.spaces.space import parse_space

DECLARATION = {
    "format": 1,
    "scheme": "aspe",
    "attributes": {
        "price": {"low": -1, "high": 5, "step": 0.1},
        "order.count": {"low": 0, "high": 9, "step": 3},
        "symbol": {"text": True},
    },
}


def make_tick_encoder(seed: int = 0) -> AspeEncoder:
    random = np.random.default_rng(seed)
    key = make_aspe_key(vector_size(3), random.bytes)
    return AspeEncoder(parse_space(DECLARATION), key, random.bytes)


def test_the_worked_example() -> None:
    key = np.array([[1, 2, 0, 1], [1, 3, 1, 1], [0, 2, 3, 2], [1, 2, 1, 4]])
    inverse = np.array([[22, -16, 7, -5], [-9, 7, -3, 2], [8, -6, 3, -2], [-3, 2, -1, 1]])
    assert (key @ inverse == np.eye(4)).all()
    lows, highs = np.array([[40.5, 6.5]]), np.array([[50.5, 10.5]])
    tests = 2 * lay_out_tests(lows, highs, np.empty((1, 4, 0)), zeros=1)[0] @ inverse.T
    assert tests.tolist() == [
        [-523, 225, -227, 75],
        [663, -285, 287, -95],
        [-123, 53, -51, 17],
        [179, -77, 75, -25],
    ]
    values = np.array([[42.0, 7], [40, 7], [41, 6]])
    points = lay_out_points(values, np.array([[3.0], [-5], [11]]), zeros=0) @ key
    points[2] *= 2
    assert points.tolist() == [[52, 113, 13, 63], [42, 93, 5, 29], [116, 248, 40, 186]]
    assert (points @ tests.T).tolist() == [[3, 17, 1, 7], [-1, 21, 1, 7], [2, 38, -2, 18]]


def test_a_key_is_well_conditioned_and_its_inverse_is_exact() -> None:
    for seed in range(20):
        key = make_encoder(4, 100, seed).key
        matrix = key.left @ np.diag(key.scales) @ key.right
        assert np.linalg.cond(matrix) <= 16
        tests = np.random.default_rng(seed).normal(size=(5, 8))
        exact = tests @ np.linalg.inv(matrix).T
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        assert np.abs(key.encrypt_tests(tests) - exact).max() < 1e-12


def test_the_same_publication_and_the_same_box_look_different_every_time() -> None:
    encoder = make_encoder(4, 100)
    cells, ranges = np.full((2, 4), 7), np.tile([[3, 9]], (2, 4, 1))
    first, second = encoder.encrypt_cells(cells)
    assert np.abs(first - second).min() > 0
    boxes = encoder.encrypt_ranges(ranges)
    assert np.abs(boxes[0] - boxes[1]).max(axis=1).min() > 0


def to_flags(lists: MatchLists, boxes: int) -> np.ndarray:
    """Which publications matched which boxes, if every box is a subscription."""
    flags = np.zeros((len(lists.offsets) - 1, boxes), np.bool_)
    flags[np.repeat(np.arange(len(flags)), np.diff(lists.offsets)), lists.numbers] = True
    assert flags.sum() == len(lists.numbers)
    return flags


def count_near_pairs(spaces: HalfSpaces, points: np.ndarray) -> int:
    """Pairs that single precision leaves open."""
    products = np.einsum("bki,pi->pbk", spaces.tests.astype("f4"), points.astype("f4"))
    return int((np.abs(products.min(axis=2)) <= spaces.margin).sum())


def check_equal_answers(boxes: int, attributes: int, cells: int, backend: Backend) -> int:
    """Compare on both neighbours of every bound of every box; returns the number of pairs."""
    ranges = draw_ranges(boxes, attributes, cells)
    points = neighbours(ranges, cells)
    encoder, owners = make_encoder(attributes, cells), np.arange(boxes, dtype=np.uint32)
    expected = brute_force(ranges, points)
    assert 0 < expected.sum() < expected.size
    spaces = lay_out_tiles(encoder.encrypt_ranges(ranges), owners)
    encrypted = match_points(spaces, encoder.encrypt_cells(points), backend)
    assert (to_flags(encrypted, boxes) == expected).all()
    index = index_cells(ranges, owners)
    positions = [
        np.searchsorted(a.numbers, points[:, i], "right") for i, a in enumerate(index.axes)
    ]
    plain = match_positions(index, np.stack(positions, axis=1).astype(np.int32), backend)
    assert (to_flags(plain, boxes) == expected).all()
    return expected.size


@pytest.mark.parametrize(("attributes", "cells"), [(1, 3), (2, 100), (4, 2**16), (4, 2**32)])
def test_encrypted_answers_equal_plain_answers(attributes: int, cells: int) -> None:
    check_equal_answers(130, attributes, cells, Backend.NUMPY)


@pytest.mark.slow
@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("cells", [2**16, 2**32])
def test_encrypted_answers_equal_plain_answers_on_ten_million_pairs(
    cells: int, backend: Backend
) -> None:
    assert check_equal_answers(800, 4, cells, backend) >= 10_000_000


def test_single_precision_leaves_pairs_open_that_double_precision_decides() -> None:
    ranges = draw_ranges(50, 4, 2**32)
    encoder = make_encoder(4, 2**32)
    spaces = lay_out_tiles(encoder.encrypt_ranges(ranges), np.arange(50, dtype=np.uint32))
    assert count_near_pairs(spaces, encoder.encrypt_cells(neighbours(ranges, 2**32))) > 100


SYMBOLS = st.sampled_from(["A", "B", "", "é"])
PUBLICATIONS = st.fixed_dictionaries(
    {},
    optional={
        "price": st.integers(-10, 50).map(lambda tenths: tenths / 10),
        "order": st.fixed_dictionaries({}, optional={"count": st.sampled_from([0, 3, 6, 9])}),
        "symbol": SYMBOLS,
        "ignored": st.just([1, 2]),
    },
)
PREDICATES = st.sampled_from(
    [
        "price > 0.3",
        "price >= 0.35 AND price < 2.1",
        "NOT price = 1.5",
        "price != 1.5",
        "price BETWEEN -7 AND 99 AND symbol IN ('A', 'é')",
        "order.count > 3 OR symbol = 'B'",
        "EXISTS order.count",
        "NOT EXISTS symbol OR price <= -1",
        "NOT (order.count = 3 AND price > 0)",
        "price NOT IN (0.1, 0.2) AND order.count <> 6",
        "EXISTS symbol AND NOT EXISTS price",
        "order.count = 3.0",
    ]
)


@settings(max_examples=60)
@given(
    texts=st.lists(PREDICATES, min_size=1, max_size=5),
    publications=st.lists(PUBLICATIONS, max_size=6),
)
def test_predicates_match_what_the_evaluator_says(
    texts: list[str], publications: list[dict[str, object]]
) -> None:
    encoder = make_tick_encoder()
    subscriptions = {n: encoder.encode_subscription(text) for n, text in enumerate(texts)}
    matcher = build_aspe_matcher(subscriptions, 3, Backend.NUMPY)
    lists = matcher.match(encoder.encode_publications(publications)).to_pylist()
    predicates = [parse_predicate(text) for text in texts]
    assert lists == [
        [n for n, predicate in enumerate(predicates) if is_match(predicate, publication)]
        for publication in publications
    ]


@pytest.mark.parametrize(
    ("publication", "problem"),
    [
        ({"price": float("nan")}, "price: must be a finite number"),
        ({"price": 10**400}, "price: must be a finite number"),
        ({"price": "1"}, "price: must be a finite number"),
        ({"price": True}, "price: must be a finite number"),
        ({"price": 0.15}, "price: must be -1 plus steps of 0.1, got 0.15"),
        ({"price": 5.1}, "price: must be from -1 to 5, got 5.1"),
        ({"symbol": 3}, "symbol: must be a text"),
        ({"symbol": None}, "symbol: must be a text"),
    ],
)
def test_values_off_the_grid_are_refused(publication: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        make_tick_encoder().encode_publications([publication])
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("colour = 'red'", "attribute 'colour' is not declared"),
        ("symbol LIKE 'A%'", "symbol: an encrypted text has only =, IN and EXISTS"),
        ("symbol != 'A'", "symbol: an encrypted text has only"),
        ("NOT symbol = 'A'", "symbol: an encrypted text has only"),
        ("price = 0.15", "can never match"),
        ("price > 5", "can never match"),
        ("price = 'x'", "can never match"),
        ("symbol IN (" + ", ".join(f"'{i}'" for i in range(17)) + ")", "needs 17 boxes"),
    ],
)
def test_predicates_that_the_scheme_cannot_express_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        make_tick_encoder().encode_subscription(text)
    assert problem in str(caught.value)
