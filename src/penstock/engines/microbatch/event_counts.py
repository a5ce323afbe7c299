"""Counts of rows by due time: a sketch that is small enough for a commit message."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

#: Rows are counted in bins of 10 ms, or wider ones if that would make too many.
BIN_S = 0.01
MAX_BINS = 200

#: (second in the middle of a bin, rows)
Events = tuple[tuple[float, int], ...]


def sketch(stamps: pa.Array) -> Events:
    """Count rows by due time.

    >>> sketch(pa.array([0, 1_000, 12_000], pa.timestamp("us", "UTC")))
    ((0.005, 2), (0.015, 1))
    """
    if not len(stamps):
        return ()
    micros = stamps.cast(pa.int64()).to_numpy(zero_copy_only=False)
    low, high = int(micros.min()), int(micros.max())
    width = max(int(BIN_S * 1e6), -(-(high - low + 1) // MAX_BINS))
    bins, counts = np.unique(micros // width, return_counts=True)
    middles = (bins + 0.5) * width / 1e6
    return tuple(zip(middles.tolist(), counts.tolist(), strict=True))


def merge(sketches: Iterable[Events]) -> Events:
    """Add sketches; neighbouring bins are joined until at most `MAX_BINS` are left."""
    counts: dict[float, int] = {}
    for events in sketches:
        for second, rows in events:
            counts[second] = counts.get(second, 0) + rows
    merged = sorted(counts.items())
    while len(merged) > MAX_BINS:
        merged = [_join(merged[i : i + 2]) for i in range(0, len(merged), 2)]
    return tuple(merged)


def _join(pair: list[tuple[float, int]]) -> tuple[float, int]:
    rows = sum(count for _, count in pair)
    return sum(second * count for second, count in pair) / rows, rows
