"""Random numbers by record: record 17 gets the same ones whenever and wherever it is generated.

A sequential generator cannot repeat a record without all records before it. Here the number of the
record is mixed into the draw, whole arrays at a time. Each kind of draw has a named stream.

>>> import numpy as np
>>> bool((uniform(np.arange(100), "height")[40:45] == uniform(np.arange(40, 45), "height")).all())
True
"""

import math
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Records with numbers from here on train models; no stream of records gets that far.
TRAINING = 1 << 40

# the step and the two mixing rounds of SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = np.uint64(31)


def bits(ids: Ids, stream: str) -> NDArray[np.uint64]:
    """Return 64 bits for each number, all equally likely."""
    begin = np.uint64(crc32(stream.encode()) << 32)
    mixed: NDArray[np.uint64] = (ids.astype(np.uint64) + begin) * _STEP
    for shift, factor in _ROUNDS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> _LAST_SHIFT)


def uniform(ids: Ids, stream: str, low: float = 0.0, high: float = 1.0) -> Floats:
    """Return a number from low up to high for each record."""
    share = (bits(ids, stream) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return low + (high - low) * share


def pick(ids: Ids, stream: str, choices: int) -> Indices:
    """Return one of 0, ..., choices - 1 for each record, each equally likely."""
    return (uniform(ids, stream) * choices).astype(np.intp)


def pick_by_share(ids: Ids, stream: str, shares: Sequence[float]) -> Indices:
    """Return an index into the shares for each record, as often as its share (they add up to 1)."""
    bounds = np.cumsum(shares)[:-1]
    return np.searchsorted(bounds, uniform(ids, stream), side="right")


def lognormal(ids: Ids, stream: str, mean: float, scv: float) -> Floats:
    """Return a lognormal number for each record; scv is variance over squared mean."""
    variance = math.log1p(scv)
    # Box-Muller: two uniform numbers make a normal one
    radius = np.sqrt(-2 * np.log1p(-uniform(ids, f"{stream}, radius")))
    normal = radius * np.cos(uniform(ids, f"{stream}, angle", 0, 2 * math.pi))
    drawn: Floats = mean * np.exp(math.sqrt(variance) * normal - variance / 2)
    return drawn
