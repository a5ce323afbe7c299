"""The index of plain subscriptions: for every cell of an attribute, bitmaps of boxes.

An attribute has up to 256 cells with about as many bounds each. *Possible*: the box has values
in the cell. *Partial*: it has some of them, not all, so a match must be verified.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.arrays import Flags, Integers, Numbers, Positions, Words
from penstock.pubsub.kernels.value_axis import ValueAxis, make_axis, rank_bounds
from penstock.pubsub.kernels.value_columns import value_schema
from penstock.pubsub.language.boxes import Box
from penstock.pubsub.language.value_set import EVERYTHING

MAX_CELLS = 256
WORD_BITS = 64
#: Boxes whose bitmaps are made at once; whole words.
_CHUNK = 64 * WORD_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRanges:
    """What boxes accept of one attribute: ranges of positions, several for each box."""

    #: Where the ranges of each box begin; one more than boxes.
    starts: Integers
    #: First and last position of each range.
    first: Positions
    last: Positions


@dataclass(frozen=True, slots=True, kw_only=True)
class BitmapIndex:
    """Boxes by attribute and cell."""

    axes: tuple[ValueAxis, ...]
    #: Ranges of all attributes one after the other, and where those of a box begin:
    #: (attributes, one more than boxes).
    starts: Integers
    first: Positions
    last: Positions
    #: (attributes, cells, words).
    possible: Words
    partial: Words
    #: The subscription of each box; boxes of one subscription lie side by side.
    owners: Numbers
    #: Bits of boxes whose subscription was not removed.
    alive: Words

    def without(self, numbers: Collection[int]) -> "BitmapIndex":
        """Return the index with some subscriptions removed; only their bits change."""
        is_removed = np.isin(self.owners, np.fromiter(numbers, np.uint32))
        return replace(self, alive=self.alive & ~pack_bits(is_removed))

    def find_positions(self, publications: pa.RecordBatch) -> Positions:
        """Return the positions of publications: (publications, attributes)."""
        if publications.schema.types != value_schema(len(self.axes)).types:
            problem = f"must have code, number and text of {len(self.axes)} attributes"
            raise InputError("publication", problem)
        columns = iter(publications.columns)
        parts = zip(self.axes, columns, columns, columns, strict=True)
        positions = [axis.find_positions(*column) for axis, *column in parts]
        return np.ascontiguousarray(np.stack(positions, axis=1))

    def find_cells(self, positions: Positions) -> Positions:
        """Return the cells of positions."""
        sizes = np.array([axis.size for axis in self.axes], np.int64)
        return (positions * _cell_counts(sizes) // sizes).astype(np.int32)


def build_index(subscriptions: Mapping[int, Sequence[Box]], paths: Sequence[str]) -> BitmapIndex:
    """Index the boxes of subscriptions, by number."""
    boxes = [box for parts in subscriptions.values() for box in parts]
    counts = [len(parts) for parts in subscriptions.values()]
    owners = np.repeat(np.fromiter(subscriptions, np.uint32), counts)
    axes, ranges = [], []
    for path in paths:
        sets = [box.get(path, EVERYTHING) for box in boxes]
        ranks = rank_bounds(bound for values in sets for ends in values.ranges for bound in ends)
        ends = [(ranks[low], ranks[high] - 1) for values in sets for low, high in values.ranges]
        first, last = np.array(ends, np.int32).reshape(-1, 2).T
        starts = np.cumsum([0, *(len(values.ranges) for values in sets)])
        axes.append(make_axis(ranks))
        ranges.append(PositionRanges(starts=starts, first=first, last=last))
    return index_ranges(axes, ranges, owners)


def index_ranges(
    axes: Sequence[ValueAxis], ranges: Sequence[PositionRanges], owners: Numbers
) -> BitmapIndex:
    """Index boxes that are ranges of positions already."""
    bitmaps = [_make_bitmaps(a, r, len(owners)) for a, r in zip(axes, ranges, strict=True)]
    sizes = np.cumsum([0, *(len(r.first) for r in ranges)])
    possible, partial = (np.stack(parts) for parts in zip(*bitmaps, strict=True))
    return BitmapIndex(
        axes=tuple(axes),
        starts=np.stack([r.starts + size for r, size in zip(ranges, sizes, strict=False)]),
        first=np.concatenate([r.first for r in ranges]),
        last=np.concatenate([r.last for r in ranges]),
        possible=possible,
        partial=partial,
        owners=owners,
        alive=pack_bits(np.ones(len(owners), np.bool_)),
    )


def pack_bits(flags: Flags) -> Words:
    """Return flags as words, the first flag in the lowest bit.

    >>> pack_bits(np.array([True, False, True]))
    array([5], dtype=uint64)
    """
    size = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-size // WORD_BITS) * WORD_BITS), np.bool_)
    padded[..., :size] = flags
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


def _cell_counts(sizes: Integers) -> Integers:
    return np.minimum(sizes, MAX_CELLS)


def _make_bitmaps(axis: ValueAxis, ranges: PositionRanges, boxes: int) -> tuple[Words, Words]:
    count = min(axis.size, MAX_CELLS)
    edges = -(-np.arange(count + 1, dtype=np.int32)[:, None] * axis.size // count)
    shape = (MAX_CELLS, -(-boxes // WORD_BITS))
    possible, partial = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    for start in range(0, boxes, _CHUNK):
        starts = ranges.starts[start : start + _CHUNK + 1]
        first, last = ranges.first[starts[0] : starts[-1]], ranges.last[starts[0] : starts[-1]]
        touches = (first < edges[1:]) & (last >= edges[:-1])
        covers = (first <= edges[:-1]) & (last >= edges[1:] - 1)
        words = slice(start // WORD_BITS, (start + _CHUNK) // WORD_BITS)
        possible[:count, words] = pack_bits(_join_ranges(touches, starts))
        partial[:count, words] = pack_bits(_join_ranges(touches & ~covers, starts))
    return possible, partial


def _join_ranges(flags: Flags, starts: Integers) -> Flags:
    """Return flags of boxes from the flags of their ranges."""
    if flags.shape[-1] == len(starts) - 1:
        return flags
    return np.logical_or.reduceat(flags, starts[:-1] - starts[0], axis=-1)
