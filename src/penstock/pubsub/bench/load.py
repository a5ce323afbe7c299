"""The load of the benchmark: random boxes and publications with a given match rate, in slices."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError
from penstock.pubsub.arrays import Doubles, Integers, Numbers
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.bitmap_index import BitmapIndex, PositionRanges, index_ranges
from penstock.pubsub.kernels.bitmap_match import match_positions
from penstock.pubsub.kernels.half_space_match import find_pairs, match_points, split_blocks
from penstock.pubsub.kernels.half_spaces import (
    HalfSpaces,
    decode_points,
    lay_out_tiles,
    vector_size,
)
from penstock.pubsub.kernels.value_axis import number_axis
from penstock.pubsub.kernels.value_columns import NUMBER_CODE, value_schema
from penstock.pubsub.matcher import AspeMatcher, Matcher, PlainMatcher
from penstock.pubsub.operators.match import MatchPoint
from penstock.pubsub.operators.subscription_index import SubscriptionLayout
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.aspe_key import make_aspe_key
from penstock.pubsub.spaces.grid import NumberGrid
from penstock.pubsub.spaces.space import ASPE, MAX_ATTRIBUTES, Space
from penstock.pubsub.spaces.wire import encode_vectors
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

#: Cells of each attribute.
CELLS = 2**16
#: What a publication carries beside its values.
PAYLOAD_BYTES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSpec:
    """What is measured."""

    subscriptions: int
    attributes: int
    #: Share of pairs that match.
    match_rate: float
    is_encrypted: bool
    publications: int
    slices: int
    threads: int
    rounds: int
    seed: int
    backend: Backend

    def __post_init__(self) -> None:
        for name in ("subscriptions", "attributes", "publications", "slices", "threads", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name}", f"must be at least 1, got {getattr(self, name)}")
        if not 0 < self.match_rate <= 1:
            raise InputError(
                "--match-rate", f"must be above 0 and at most 1, got {self.match_rate}"
            )
        if self.attributes > MAX_ATTRIBUTES:
            problem = f"must be at most {MAX_ATTRIBUTES}, got {self.attributes}"
            raise InputError("--attributes", problem)
        if self.slices > self.subscriptions:
            raise InputError("--slices", f"must be at most --subscriptions, got {self.slices}")
        if self.seed < 0:
            raise InputError("--seed", f"must be at least 0, got {self.seed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSlice:
    """One slice of subscriptions: its matcher, and its bare kernel on the same publications."""

    matcher: Matcher
    run_kernel: Callable[[], object]
    #: What the kernel reads.
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchLoad:
    """Everything that a measurement needs."""

    #: Cells of publications, and first and last cells of boxes: the values before encryption.
    cells: Integers
    ranges: Integers
    publications: pa.RecordBatch
    #: The same as rows of their topic, and the function of operator M.
    rows: pa.RecordBatch
    operator: MatchPoint
    slices: tuple[BenchSlice, ...]


def make_load(spec: BenchSpec) -> BenchLoad:
    """Draw publications and boxes; a publication is in a box with the given rate."""
    random = np.random.default_rng(spec.seed)
    cells, ranges = draw_cells(spec, random, spec.publications), draw_ranges(spec, random)
    make_slices = _make_aspe_slices if spec.is_encrypted else _make_plain_slices
    publications, slices = make_slices(spec, cells, ranges, random)
    layout = SubscriptionLayout(
        paths=tuple(f"a{i}" for i in range(spec.attributes)),
        is_encrypted=spec.is_encrypted,
        backend=spec.backend,
    )
    return BenchLoad(
        cells=cells,
        ranges=ranges,
        publications=publications,
        rows=_make_rows(publications, random, is_encrypted=spec.is_encrypted),
        operator=MatchPoint(layout),
        slices=slices,
    )


def _make_rows(
    publications: pa.RecordBatch, random: np.random.Generator, *, is_encrypted: bool
) -> pa.RecordBatch:
    """Return publications as rows of their topic."""
    count = publications.num_rows
    columns = dict(zip(publications.schema.names, publications.columns, strict=True))
    if is_encrypted:
        columns = {"vector": pa.array(encode_vectors(publications), pa.binary())}
    else:
        columns |= {
            name: column.cast(pa.int8())
            for name, column in columns.items()
            if column.type == pa.uint8()
        }
    payloads = [random.bytes(PAYLOAD_BYTES) for _ in range(count)]
    columns["payload"] = pa.array(payloads, pa.binary())
    columns[EVENT] = pa.repeat(pa.scalar(0, TIMESTAMP), count)
    return pa.RecordBatch.from_pydict(columns)


def draw_cells(spec: BenchSpec, random: np.random.Generator, publications: int) -> Integers:
    """Draw the cells of publications."""
    return random.integers(0, CELLS, (publications, spec.attributes))


def draw_ranges(spec: BenchSpec, random: np.random.Generator) -> Integers:
    """Draw the first and last cells of boxes."""
    # a range of this width, with an even start, has an even value with the wanted probability
    width = max(1, round(CELLS * spec.match_rate ** (1 / spec.attributes)))
    first = random.integers(0, CELLS - width + 1, (spec.subscriptions, spec.attributes))
    return np.stack([first, first + width - 1], axis=2)


def _make_aspe_slices(
    spec: BenchSpec, cells: Integers, ranges: Integers, random: np.random.Generator
) -> tuple[pa.RecordBatch, tuple[BenchSlice, ...]]:
    grid = NumberGrid(low=0, high=CELLS - 2, step=1)
    space = Space(
        scheme=ASPE, attributes=FrozenDict({f"a{i}": grid for i in range(spec.attributes)})
    )
    size = vector_size(spec.attributes)
    encoder = AspeEncoder(space, make_aspe_key(size, random.bytes), random.bytes)
    publications = encoder.make_batch(encoder.encrypt_cells(cells))
    points = decode_points(publications, size)
    parts = [
        lay_out_tiles(encoder.encrypt_ranges(ranges[numbers]), numbers)
        for numbers in _split_numbers(spec)
    ]
    return publications, tuple(_make_aspe_slice(spaces, points, spec.backend) for spaces in parts)


def _make_aspe_slice(spaces: HalfSpaces, points: Doubles, backend: Backend) -> BenchSlice:
    def run_kernel() -> object:
        if backend is Backend.NUMPY:
            return match_points(spaces, points, backend)
        return [find_pairs(spaces, block) for block in split_blocks(points)]

    return BenchSlice(
        matcher=AspeMatcher(spaces=spaces, backend=backend),
        run_kernel=run_kernel,
        index_bytes=spaces.tiles.nbytes,
    )


def _make_plain_slices(
    spec: BenchSpec, cells: Integers, ranges: Integers, _random: np.random.Generator
) -> tuple[pa.RecordBatch, tuple[BenchSlice, ...]]:
    codes = pa.array(np.full(len(cells), NUMBER_CODE, np.uint8))
    texts = pa.nulls(len(cells), pa.binary())
    columns = [(codes, pa.array(values.astype(np.float64)), texts) for values in cells.T]
    schema = value_schema(spec.attributes)
    publications = pa.record_batch([c for parts in columns for c in parts], schema=schema)
    parts = [index_cells(ranges[numbers], numbers) for numbers in _split_numbers(spec)]
    return publications, tuple(_make_plain_slice(i, publications, spec.backend) for i in parts)


def _make_plain_slice(
    index: BitmapIndex, publications: pa.RecordBatch, backend: Backend
) -> BenchSlice:
    positions = index.find_positions(publications)
    return BenchSlice(
        matcher=PlainMatcher(index=index, backend=backend),
        run_kernel=lambda: match_positions(index, positions, backend),
        index_bytes=index.possible.nbytes + index.partial.nbytes,
    )


def index_cells(ranges: Integers, owners: Numbers) -> BitmapIndex:
    """Index boxes of whole numbers: (boxes, attributes, first and last)."""
    axes, positions = [], []
    for first, last in ranges.transpose(1, 2, 0):
        bounds = np.unique([first, last + 1]).astype(np.float64)
        axes.append(number_axis(bounds))
        positions.append(
            PositionRanges(
                starts=np.arange(len(first) + 1),
                first=np.searchsorted(bounds, first, "right").astype(np.int32),
                last=(np.searchsorted(bounds, last + 1, "right") - 1).astype(np.int32),
            )
        )
    return index_ranges(axes, positions, owners)


def _split_numbers(spec: BenchSpec) -> list[Numbers]:
    """Return the numbers of the subscriptions of each slice."""
    return np.array_split(np.arange(spec.subscriptions, dtype=np.uint32), spec.slices)
