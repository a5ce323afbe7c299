"""The bitmap index for plain subscriptions equals an independent oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.factories import brute_force, draw_ranges
from tests.pubsub.language.predicates import CASES, PUBLICATIONS, Case, Publication

from penstock.errors import InputError
from penstock.pubsub.bench.load import index_cells
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.bitmap_index import build_index
from penstock.pubsub.kernels.bitmap_match import match_positions
from penstock.pubsub.kernels.value_columns import make_value_columns
from penstock.pubsub.language.boxes import Box
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.values import Key
from penstock.pubsub.matcher import build_plain_matcher
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import parse_space

SPACE = parse_space(
    {"format": 1, "scheme": "plain", "attributes": {"a": {}, "b": {}, "c.d": {"text": True}}}
)


def encode(cases: list[Case]) -> dict[int, tuple[Box, ...]]:
    """The subscriptions that can be encoded, by number."""
    encoded = {}
    for number, case in enumerate(cases):
        try:
            encoded[7 * number] = PlainEncoder(SPACE).encode_subscription(case.text)
        except PredicateError as error:
            assert "boxes" in error.reason or "never match" in error.reason
    return encoded


@settings(max_examples=100)
@given(cases=st.lists(CASES, max_size=8), publications=st.lists(PUBLICATIONS, max_size=8))
@pytest.mark.parametrize("backend", Backend)
def test_the_index_answers_what_the_oracle_answers(
    backend: Backend, cases: list[Case], publications: list[Publication]
) -> None:
    encoded = encode(cases)
    matcher = build_plain_matcher(encoded, SPACE.paths, backend)
    batch = PlainEncoder(SPACE).encode_publications(publications)
    for removed in ([], list(encoded)[::2]):
        lists = matcher.without(removed).match(batch).to_pylist()
        assert lists == [
            [n for n in encoded if n not in removed and cases[n // 7].decide(publication)]
            for publication in publications
        ]


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize(
    ("boxes", "cells"), [(1, 5), (63, 100), (64, 400), (65, 10_000), (5000, 2**16)]
)
def test_many_bounds_share_a_cell(boxes: int, cells: int, backend: Backend) -> None:
    ranges = draw_ranges(boxes, 3, cells)
    index = index_cells(ranges, np.arange(boxes, dtype=np.uint32))
    points = np.random.default_rng(1).integers(0, cells, (300, 3))
    batch = make_value_columns([[(3, float(x)) for x in column] for column in points.T])
    lists = match_positions(index, index.find_positions(batch), backend).to_arrow().to_pylist()
    expected = brute_force(ranges, points)
    assert lists == [np.nonzero(row)[0].tolist() for row in expected]


@pytest.mark.parametrize("backend", Backend)
def test_a_set_with_more_values_than_cells(backend: Backend) -> None:
    texts = [f"name{i:04d}" for i in range(400)]
    odd = "c.d IN (" + ", ".join(f"'{text}'" for text in texts[1::2][:150]) + ")"
    even = "c.d IN (" + ", ".join(f"'{text}'" for text in texts[::2][:150]) + ") OR c.d LIKE 'x%'"
    encoder = PlainEncoder(SPACE)
    encoded = {n: encoder.encode_subscription(text) for n, text in enumerate((odd, even))}
    matcher = build_plain_matcher(encoded, SPACE.paths, backend)
    publications: list[dict[str, Any]] = [{"c": {"d": text}} for text in [*texts, "x", "w", "xyz"]]
    lists = matcher.match(encoder.encode_publications(publications)).to_pylist()
    expected = [[1 - i % 2] if i < 300 else [] for i in range(400)]
    assert lists == [*expected, [1], [], [1]]


def test_texts_with_half_a_surrogate_pair_are_compared() -> None:
    encoder = PlainEncoder(SPACE)
    encoded = {1: encoder.encode_subscription("a = 'x' OR a LIKE '\ud7ff%'")}
    matcher = build_plain_matcher(encoded, SPACE.paths, Backend.NUMPY)
    batch = encoder.encode_publications([{"a": "\ud800"}, {"a": "\ud7ff!"}, {"a": "x"}])
    assert matcher.match(batch).to_pylist() == [[], [1], [1]]


def test_an_index_without_subscriptions() -> None:
    index = build_index({}, ["a"])
    keys: list[Key] = [(0,), (3, 1.0), (4, "x")]
    positions = index.find_positions(make_value_columns([keys]))
    for backend in Backend:
        assert match_positions(index, positions, backend).to_arrow().to_pylist() == [[], [], []]


def test_an_attribute_that_is_not_declared_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        PlainEncoder(SPACE).encode_subscription("a = 1 AND c.e = 2")
    assert "'c.e' is not declared" in str(caught.value)
    assert "did you mean 'c.d'?" in str(caught.value)
    assert caught.value.position == 10  # type: ignore[attr-defined]
