"""Fewer points for a picture: the smallest and the largest value of each bucket, so peaks stay."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def bucket_edges(count: int, points: int) -> NDArray[np.intp]:
    """Return where buckets begin; each bucket gives two points, so there are `points / 2`.

    >>> bucket_edges(10, 4)
    array([0, 5])
    >>> bucket_edges(3, 4)
    array([0, 1, 2])
    """
    buckets = max(1, points // 2)
    if count <= points:
        return np.arange(count)
    return (np.arange(buckets) * count) // buckets


def decimate_times(times: Floats, points: int) -> Floats:
    """Return the times of the points: the first and the last of each bucket."""
    if len(times) <= points:
        return times
    first = bucket_edges(len(times), points)
    last = np.append(first[1:], len(times)) - 1
    return np.stack([times[first], times[last]], axis=1).ravel()


def decimate(values: Floats, points: int) -> Floats:
    """Return two values per bucket: its smallest and largest, in the order in which they came.

    Unknown values (NaN) are left out; a bucket without any other value stays unknown.

    >>> decimate(np.array([0.0, 9.0, 1.0, 1.0, -5.0, 1.0, 2.0, 3.0]), 4)
    array([ 0.,  9., -5.,  3.])
    """
    if len(values) <= points:
        return values
    edges = bucket_edges(len(values), points)
    is_known = ~np.isnan(values)
    low_values = np.where(is_known, values, np.inf)
    high_values = np.where(is_known, values, -np.inf)
    low, high = np.minimum.reduceat(low_values, edges), np.maximum.reduceat(high_values, edges)
    pairs = np.stack([low, high], axis=1)
    lengths = np.diff(np.append(edges, len(values)))
    places = np.arange(len(values))
    at_low = _first_places(low_values == np.repeat(low, lengths), places, edges)
    at_high = _first_places(high_values == np.repeat(high, lengths), places, edges)
    swap = at_high < at_low
    pairs[swap] = pairs[swap][:, ::-1]
    pairs[~np.isfinite(pairs)] = np.nan
    return pairs.ravel()


def _first_places(
    matches: NDArray[np.bool_], places: NDArray[np.intp], edges: NDArray[np.intp]
) -> NDArray[np.intp]:
    first: NDArray[np.intp] = np.minimum.reduceat(np.where(matches, places, len(places)), edges)
    return first


def to_json_numbers(values: Floats, digits: int = 6) -> list[float | None]:
    """Write values for JSON: four bytes hold about seven digits, and unknown is None.

    >>> to_json_numbers(np.array([1.0, np.nan, 0.1], dtype=np.float32))
    [1, None, 0.1]
    """
    return [_number(value, digits) for value in values.tolist()]


def _number(value: float, digits: int) -> float | None:
    if value != value or value in (float("inf"), float("-inf")):
        return None
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.{digits}g}")


def slice_range(times: Floats, from_s: float, to_s: float) -> tuple[int, int]:
    """Return the first and the end of the ticks in a range, with one more on each side."""
    first = int(np.searchsorted(times, from_s, "left"))
    end = int(np.searchsorted(times, to_s, "right"))
    return max(0, first - 1), min(len(times), end + 1)


def evenly(count: int, wanted: int) -> Sequence[int]:
    """Return at most `wanted` numbers below `count`, evenly spread, with the first and the last.

    >>> evenly(10, 4), evenly(3, 9)
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if count <= wanted:
        return list(range(count))
    return [round(i * (count - 1) / (wanted - 1)) for i in range(wanted)]
