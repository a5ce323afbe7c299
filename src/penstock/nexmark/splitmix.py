"""The random numbers of the reference, for many events at once: SplitMix, seeded with event ids.

The number of draws of an event depends on the values drawn. So each event has a separate state,
which advances only when that event draws.

>>> draws = Draws(np.array([4, 5]))
>>> draws.below(1000).tolist(), draws.below(1000, np.array([1])).tolist()
([19, 814], [691])
>>> Draws(np.array([5])).below(1000).tolist()
[814]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.pipelines.record_draws import Floats, Ids

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
_States = NDArray[np.uint64]

# the step from draw to draw, and two mixing rounds each for 64 and for 32 bits
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS_64 = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_ROUNDS_32 = ((33, 0x62A9D9ED799705F5), (28, 0xCB24D0A5C88C35B3))
_WHOLE = 1 << 31


class Draws:
    """One sequence of draws for each seed; `rows` lets only some of them draw."""

    def __init__(self, seeds: Ids) -> None:
        self._states = seeds.astype(np.uint64)

    def __len__(self) -> int:
        return len(self._states)

    def bits(self, rows: Rows | None = None) -> NDArray[np.uint32]:
        """Draw 32 bits."""
        return (_mixed(self._step(rows), _ROUNDS_32) >> np.uint64(32)).astype(np.uint32)

    def uniform(self, rows: Rows | None = None) -> Floats:
        """Draw from 0 up to 1."""
        mixed = _mixed(self._step(rows), _ROUNDS_64)
        mixed ^= mixed >> np.uint64(31)
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: int | Ints, rows: Rows | None = None) -> Ints:
        """Draw one of 0, ..., bound - 1; the bound may differ from row to row."""
        drawn = self.bits(rows)
        if isinstance(bound, int) and bound & (bound - 1) == 0:
            return (drawn & np.uint32(bound - 1)).astype(np.int64)
        bounds: Any = np.asarray(bound, np.uint32)
        half = drawn >> np.uint32(1)
        value: Ints = (half % bounds).astype(np.int64)
        if bounds.ndim:
            power = np.flatnonzero(bounds & (bounds - np.uint32(1)) == 0)
            value[power] = drawn[power] & (bounds[power] - np.uint32(1))
        # the topmost numbers would bias the remainder: draw them again
        top = np.uint32(_WHOLE) // bounds * bounds
        if (again := np.flatnonzero(half >= top)).size:
            mine = again if rows is None else rows[again]
            value[again] = self.below(bound if isinstance(bound, int) else bound[again], mine)
        return value

    def _step(self, rows: Rows | None) -> _States:
        if rows is None:
            self._states += _STEP
            return self._states
        states: _States = self._states[rows] + _STEP
        self._states[rows] = states
        return states


def _mixed(states: _States, rounds: tuple[tuple[int, int], ...]) -> _States:
    mixed = states
    for shift, factor in rounds:
        mixed = mixed ^ (mixed >> np.uint64(shift))
        mixed *= np.uint64(factor)
    return mixed
