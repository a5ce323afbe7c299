"""The scheme `aspe`: a matcher compares by scalar products and sees no value.

This is obfuscation, not confidentiality: docs/pubsub.md says what an attacker computes.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.arrays import Doubles, Integers
from penstock.pubsub.kernels.half_spaces import (
    POINT_DECOYS,
    TEST_DECOYS,
    point_schema,
    vector_size,
)
from penstock.pubsub.language.boxes import MAX_BOXES, Box
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.value_set import EVERYTHING
from penstock.pubsub.language.values import read_key
from penstock.pubsub.spaces.aspe_key import (
    AspeKey,
    Entropy,
    draw_uniform,
)
from penstock.pubsub.spaces.cell_ranges import Axis, CellRange, NumberAxis, TextAxis
from penstock.pubsub.spaces.encoder import Publication, check_can_match, compile_for_space
from penstock.pubsub.spaces.grid import NumberGrid
from penstock.pubsub.spaces.space import Space

#: A bound that is not there is a test this far beyond the end of the grid, at least and at most.
_MIN_BEYOND, _MAX_BEYOND = 0.25, 1.0


def lay_out_points(values: Doubles, decoys: Doubles, zeros: int) -> Doubles:
    """Return rows (values, 1, decoys, zeros) before they are encrypted."""
    ones = np.ones((len(values), 1))
    return np.hstack([values, ones, decoys, np.zeros((len(values), zeros))])


def lay_out_tests(lows: Doubles, highs: Doubles, decoys: Doubles, zeros: int) -> Doubles:
    """Return the tests x_i >= low, x_i <= high of every box and attribute, before encryption.

    Bounds are (boxes, attributes), decoys (boxes, tests, any number), the result (boxes, tests, n).
    """
    boxes, count = lows.shape
    tests = np.zeros((boxes, 2 * count, count + 1))
    for i in range(count):
        tests[:, 2 * i, i], tests[:, 2 * i, count] = 1, -lows[:, i]
        tests[:, 2 * i + 1, i], tests[:, 2 * i + 1, count] = -1, highs[:, i]
    return np.concatenate([tests, np.zeros((boxes, 2 * count, zeros)), decoys], axis=2)


@dataclass(frozen=True, slots=True)
class AspeEncoder:
    """Encrypts for an `aspe` space; belongs to clients, because it holds the key."""

    space: Space
    key: AspeKey = field(repr=False)
    entropy: Entropy = field(default=os.urandom, repr=False)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The attributes as grids."""
        return tuple(
            NumberAxis(path, domain)
            if isinstance(domain, NumberGrid)
            else TextAxis(path, self.key.secret)
            for path, domain in self.space.attributes.items()
        )

    @property
    def schema(self) -> pa.Schema:
        """One column of vectors."""
        return point_schema(vector_size(len(self.space.attributes)))

    def encode_publications(self, publications: Sequence[Publication]) -> pa.RecordBatch:
        """Return one encrypted vector per publication; values off the grid are refused."""
        axes = self.axes
        cells = [[axis.find_cell(read_key(p, axis.path)) for axis in axes] for p in publications]
        return self.make_batch(self.encrypt_cells(np.array(cells, np.int64).reshape(-1, len(axes))))

    def make_batch(self, points: Doubles) -> pa.RecordBatch:
        """Return encrypted vectors as a column."""
        column = pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), points.shape[1])
        return pa.record_batch([column], schema=self.schema)

    def encode_subscription(self, text: str) -> Doubles:
        """Return the encrypted tests of a predicate: boxes, tests, components."""
        axes = self.axes
        ranges = [
            row
            for box in compile_for_space(text, self.space)
            for row in product(*(_find_ranges(text, axis, box) for axis in axes))
        ]
        check_can_match(text, ranges)
        if len(ranges) > MAX_BOXES:
            problem = f"needs {len(ranges)} boxes in an encrypted space; at most {MAX_BOXES} work"
            raise PredicateError(text, 0, problem, "split it into several subscriptions")
        return self.encrypt_ranges(np.array(ranges, np.int64))

    def encrypt_cells(self, cells: Integers) -> Doubles:
        """Encrypt publications by their cells: (publications, attributes)."""
        sizes = self._sizes()
        values = (2.0 * cells - (sizes - 1)) / sizes
        decoys = draw_uniform((len(cells), POINT_DECOYS), self.entropy)
        return self.key.encrypt_points(lay_out_points(values, decoys, TEST_DECOYS))

    def encrypt_ranges(self, ranges: Integers) -> Doubles:
        """Encrypt boxes by their first and last cells: (boxes, attributes, 2)."""
        sizes = self._sizes()
        # bounds lie half a step outside of the range, so that no value is on one
        lows = (2.0 * ranges[:, :, 0] - sizes) / sizes
        highs = (2.0 * ranges[:, :, 1] + 2 - sizes) / sizes
        middle, half = (_MAX_BEYOND + _MIN_BEYOND) / 2, (_MAX_BEYOND - _MIN_BEYOND) / 2
        beyond = 1 + middle + half * draw_uniform(ranges.shape, self.entropy)
        lows = np.where(ranges[:, :, 0] == 0, -beyond[:, :, 0], lows)
        highs = np.where(ranges[:, :, 1] == sizes - 1, beyond[:, :, 1], highs)
        boxes, count, _ = ranges.shape
        decoys = draw_uniform((boxes, 2 * count, TEST_DECOYS), self.entropy)
        return self.key.encrypt_tests(lay_out_tests(lows, highs, decoys, POINT_DECOYS))

    def _sizes(self) -> Integers:
        return np.array([axis.cells for axis in self.axes], np.int64)


def _find_ranges(text: str, axis: Axis, box: Box) -> list[CellRange]:
    try:
        return axis.find_ranges(box.get(axis.path, EVERYTHING))
    except InputError as error:
        raise PredicateError(text, 0, f"{axis.path}: {error.problem}", error.hint) from None
