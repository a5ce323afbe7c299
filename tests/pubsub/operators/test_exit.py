"""Exit points join the lists of a publication, in one batch or over several."""

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.pubsub.local_operator import LocalOperator
from penstock.pubsub.operators.result_rows import make_notices
from penstock.pubsub.operators.topics import NOTICES, PARTIAL, SCHEMAS
from penstock.pubsub.pipeline import EXIT, PubSubOptions, build_pipeline
from penstock.pubsub.spaces.space import parse_space
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import parse_schema, with_event

SPACE = parse_space({"format": 1, "scheme": "plain", "attributes": {"price": {}}})
SLICES = 4

#: Publication, slice, numbers.
Row = tuple[int, int, list[int]]


def make_operator() -> LocalOperator:
    pipeline = build_pipeline(SPACE, PubSubOptions(match_slices=SLICES, exit_slices=3))
    schemas = {name: parse_schema(text) for name, text in SCHEMAS.items()}
    return LocalOperator(pipeline.operators[EXIT], schemas)


def make_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [
        pa.array([publication for publication, _, _ in rows], pa.int64()),
        pa.array([number for _, number, _ in rows], pa.int32()),
        pa.array([np.array(numbers, "<u4").tobytes() for _, _, numbers in rows], pa.binary()),
        pa.array([None if s else f"event {p}".encode() for p, s, _ in rows], pa.binary()),
        pa.array([p for p, _, _ in rows], pa.int64()).cast(TIMESTAMP),
    ]
    schema = with_event(parse_schema(SCHEMAS[PARTIAL]))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def run(operator: LocalOperator, rows: Sequence[Row]) -> list[tuple[int, list[int], bytes]]:
    results = operator.run({PARTIAL: make_rows(rows)})
    if NOTICES not in results:
        return []
    assert (
        results[NOTICES]["_event"].cast(pa.int64()).to_pylist()
        == results[NOTICES]["publication"].to_pylist()
    )
    notices = make_notices(results[NOTICES])
    return [(n.publication, list(n.subscriptions), n.payload) for n in notices]


def draw_rows(publications: int, seed: int) -> tuple[list[Row], list[tuple[int, list[int], bytes]]]:
    """Lists of all slices in any order, and what must come out."""
    draw = random.Random(seed)
    rows, expected = [], []
    for publication in range(publications):
        lists = [[draw.randrange(2**32) for _ in range(draw.randrange(3))] for _ in range(SLICES)]
        rows += [(publication, number, numbers) for number, numbers in enumerate(lists)]
        if joined := [number for numbers in lists for number in numbers]:
            expected.append((publication, joined, f"event {publication}".encode()))
    draw.shuffle(rows)
    return rows, expected


def test_whole_publications_are_joined_and_those_without_matches_left_out() -> None:
    rows, expected = draw_rows(200, seed=1)
    assert 0 < len(expected) < 200
    operator = make_operator()
    assert run(operator, rows) == expected
    assert run(operator, [(1000, s, [s]) for s in range(SLICES)]) == [
        (1000, [0, 1, 2, 3], b"event 1000")
    ]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 12), st.lists(st.integers(0, 48), max_size=6), st.integers(0, 10**6))
def test_halves_wait_until_the_others_are_there(
    publications: int, cuts: list[int], seed: int
) -> None:
    rows, expected = draw_rows(publications, seed)
    operator = make_operator()
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    joined = [
        notice
        for low, high in itertools.pairwise(bounds)
        for notice in (run(operator, rows[low:high]) if low < high else [])
    ]
    assert sorted(joined) == expected
    assert operator.count_stored() == 0


def test_a_half_is_stored() -> None:
    operator = make_operator()
    assert run(operator, [(5, 0, [1]), (5, 1, []), (6, 3, [9])]) == []
    assert operator.count_stored() == 3


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_the_payload_may_come_first_or_last(order: Sequence[int]) -> None:
    operator = make_operator()
    for number in order[:-1]:
        assert run(operator, [(7, number, [number])]) == []
    assert run(operator, [(7, order[-1], [order[-1]])]) == [(7, [0, 1, 2, 3], b"event 7")]
