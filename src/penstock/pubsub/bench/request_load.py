"""The load of the end-to-end benchmark as rows of requests, made before anything is measured."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.pubsub.arrays import Doubles, Integers
from penstock.pubsub.bench.load import (
    CELLS,
    PAYLOAD_BYTES,
    BenchSpec,
    draw_cells,
    draw_ranges,
)
from penstock.pubsub.operators.topics import REQUESTS, SCHEMAS, RequestKind
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.grid import NumberGrid
from penstock.pubsub.spaces.space import ASPE, PLAIN, Domain, Space
from penstock.pubsub.spaces.space_key import make_space_key
from penstock.topics.schema import parse_schema

#: Different publications; they are sent again and again.
_DIFFERENT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequests:
    """Requests, and the values behind them."""

    space: Space
    #: One row for each subscription, whose number is its place.
    subscriptions: pa.Table
    #: Cells of publications, and first and last cells of boxes.
    cells: Integers
    ranges: Integers
    _contents: pa.Array
    _payloads: pa.Array

    def make_publications(self, first: int, count: int) -> pa.Table:
        """Return rows of some publications; their content repeats."""
        numbers = np.arange(first, first + count)
        places = pa.array(numbers % len(self._contents))
        return _make_rows(
            RequestKind.PUBLISH,
            lanes=pa.array(numbers),
            numbers=pa.nulls(count, pa.int64()),
            contents=self._contents.take(places),
            payloads=self._payloads.take(places),
        )

    def find_matches(self, payload: bytes) -> Integers:
        """Return the subscriptions that match the publication with a payload, by brute force."""
        cells = self.cells[self._payloads.index(pa.scalar(payload)).as_py()]
        is_inside = (self.ranges[:, :, 0] <= cells) & (cells <= self.ranges[:, :, 1])
        return np.flatnonzero(is_inside.all(axis=1))


def make_bench_requests(spec: BenchSpec) -> BenchRequests:
    """Draw and encode subscriptions and publications."""
    random = np.random.default_rng(spec.seed)
    cells = draw_cells(spec, random, _DIFFERENT)
    ranges = draw_ranges(spec, random)
    # cell 0 is a missing attribute
    grid = NumberGrid(low=0, high=CELLS - 2, step=1)
    scheme = ASPE if spec.is_encrypted else PLAIN
    attributes: FrozenDict[str, Domain] = FrozenDict(
        {f"a{i}": grid for i in range(spec.attributes)}
    )
    space = Space(scheme=scheme, attributes=attributes)
    encoder = make_space_key(space, random.bytes).make_encoder(random.bytes)
    if isinstance(encoder, AspeEncoder):
        contents = _pack(encoder.encrypt_cells(cells))
        predicates = _pack(encoder.encrypt_ranges(ranges))
    else:
        contents = pa.array([_make_event(row) for row in cells.tolist()], pa.binary())
        predicates = pa.array([_make_predicate(box) for box in ranges.tolist()], pa.binary())
    numbers = pa.array(np.arange(spec.subscriptions))
    payloads = pa.array([random.bytes(PAYLOAD_BYTES) for _ in range(len(cells))], pa.binary())
    return BenchRequests(
        space=space,
        subscriptions=_make_rows(
            RequestKind.SUBSCRIBE,
            lanes=numbers,
            numbers=numbers,
            contents=predicates,
            payloads=pa.nulls(spec.subscriptions, pa.binary()),
        ),
        cells=cells,
        ranges=ranges,
        _contents=contents,
        _payloads=payloads,
    )


def _make_rows(
    kind: RequestKind, *, lanes: pa.Array, numbers: pa.Array, contents: pa.Array, payloads: pa.Array
) -> pa.Table:
    kinds = pa.repeat(pa.scalar(int(kind), pa.int8()), len(lanes))
    columns = [lanes, kinds, numbers, contents, payloads]
    return pa.Table.from_arrays(columns, schema=parse_schema(SCHEMAS[REQUESTS]))


def _pack(vectors: Doubles) -> pa.Array:
    """Return the doubles of each row as bytes."""
    return pa.array([row.tobytes() for row in vectors.astype("<f8")], pa.binary())


def _make_event(cells: list[int]) -> bytes:
    """Return an event with its attributes; cell 0 is a missing one."""
    fields = [f'"a{i}": {cell - 1}' for i, cell in enumerate(cells) if cell]
    return f"{{{', '.join(fields)}}}".encode()


def _make_predicate(box: list[list[int]]) -> bytes:
    parts = []
    for i, (first, last) in enumerate(box):
        between = f"a{i} BETWEEN {max(first, 1) - 1} AND {last - 1}"
        parts.append(between if first else f"({between} OR NOT EXISTS a{i})")
    return " AND ".join(parts).encode()
