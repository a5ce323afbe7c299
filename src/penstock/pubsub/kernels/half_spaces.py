"""Encrypted subscriptions in the layout of the kernel: tests as vectors, in tiles of 64 boxes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.arrays import Doubles, Flags, Numbers, Singles, byte_offsets

#: Boxes in a tile; at four attributes a tile has 16 kB and fits the L1 cache.
LANES = 64
#: Random components of a publication, and of a test.
POINT_DECOYS, TEST_DECOYS = 2, 1
#: How far the length of an encrypted vector may be from 1.
_MAX_LENGTH_ERROR = 1e-9
_COLUMN = "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfSpaces:
    """Boxes as tests: a box matches if the product with each of its tests is positive."""

    #: Decide: (boxes, tests, components).
    tests: Doubles
    #: Pre-select: the same in single precision, (tiles, tests, components, lanes).
    tiles: Singles
    #: The subscription of each box; boxes of one subscription lie side by side.
    owners: Numbers
    #: False for boxes of removed subscriptions.
    alive: Flags

    @property
    def size(self) -> int:
        """Components of a vector."""
        return int(self.tests.shape[2])

    @property
    def margin(self) -> np.float32:
        """How far a product in single precision can be from the true one, at most.

        Holds for unit vectors rounded to single precision and any order of summation.
        """
        return np.float32((self.size + 3) * 2.0**-24)

    def without(self, numbers: Collection[int]) -> "HalfSpaces":
        """Return the boxes with some subscriptions removed; only their bits change."""
        is_removed = np.isin(self.owners, np.fromiter(numbers, np.uint32))
        return replace(self, alive=self.alive & ~is_removed)


def vector_size(attributes: int) -> int:
    """Return the length of encrypted vectors: values, one constant, decoys."""
    return attributes + 1 + POINT_DECOYS + TEST_DECOYS


def build_half_spaces(subscriptions: Mapping[int, Doubles], attributes: int) -> HalfSpaces:
    """Lay out the encrypted boxes of subscriptions, by number."""
    shape = (0, 2 * attributes, vector_size(attributes))
    tests = np.concatenate([np.empty(shape), *subscriptions.values()])
    counts = [len(boxes) for boxes in subscriptions.values()]
    owners = np.repeat(np.fromiter(subscriptions, np.uint32), counts)
    return lay_out_tiles(tests, owners)


def lay_out_tiles(tests: Doubles, owners: Numbers) -> HalfSpaces:
    """Lay out boxes whose subscriptions are side by side."""
    check_unit_vectors(tests, "subscription")
    boxes, count, size = tests.shape
    tile_count = -(-boxes // LANES)
    # lanes without a box stay zero; kernels cut them off by their number, not by their product
    padded = np.zeros((tile_count * LANES, count, size), np.float32)
    padded[:boxes] = tests
    by_lane = padded.reshape(tile_count, LANES, count, size).transpose(0, 2, 3, 1)
    return HalfSpaces(
        tests=np.ascontiguousarray(tests),
        tiles=np.ascontiguousarray(by_lane),
        owners=owners,
        alive=np.ones(boxes, np.bool_),
    )


def point_schema(size: int) -> pa.Schema:
    """Return the columns of encrypted publications."""
    return pa.schema([pa.field(_COLUMN, pa.list_(pa.float64(), size), nullable=False)])


def decode_points(publications: pa.RecordBatch, size: int) -> Doubles:
    """Return encrypted publications as rows of an array, without a copy."""
    if publications.schema.types != point_schema(size).types:
        raise InputError("publication", f"must be one column of vectors of {size} numbers")
    column = publications.column(0)
    if column.null_count:
        raise InputError("publication", "must not be null")
    points = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    check_unit_vectors(points, "publication")
    return np.asarray(points)


def read_doubles(contents: pa.BinaryArray, size: int) -> Doubles:
    """Return the doubles of a column of bytes, as rows of this size, without a copy."""
    bounds = byte_offsets(contents)
    data = contents.buffers()[2] or b""
    return np.frombuffer(data, "<f8", (bounds[-1] - bounds[0]) // 8, bounds[0]).reshape(-1, size)


def check_unit_vectors(vectors: Doubles, name: str) -> None:
    """Refuse what no client has encrypted; the margin holds for unit vectors only."""
    if not np.all(are_unit_vectors(vectors)):
        raise InputError(name, "is no encrypted vector: its length must be 1")


def are_unit_vectors(vectors: Doubles) -> Flags:
    """Return which vectors have length 1; one with NaN or infinity has not."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.einsum("...i,...i->...", vectors, vectors)
        return np.asarray(np.abs(lengths - 1) <= 2 * _MAX_LENGTH_ERROR)
