"""Grids: the values of an attribute as whole numbers, cell 0 for a missing attribute."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from penstock.errors import InputError

#: A grid may have this many values.
MAX_VALUES = 2**32
#: Bounds may have this many steps from zero, so that no two values share a decimal form.
_MAX_STEPS = 10**15


@dataclass(frozen=True, kw_only=True)
class NumberGrid:
    """Numbers from `low` to `high` in steps, in decimal: 0.3 is three steps of 0.1."""

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(name, f"must be a number, got {value!r}")
            if not math.isfinite(value):
                raise InputError(name, f"must be finite, got {value!r}")
        if self.step <= 0:
            raise InputError("step", f"must be above 0, got {self.step!r}")
        if self.high <= self.low:
            raise InputError("high", f"must be above low ({self.low!r}), got {self.high!r}")
        self._check_size()

    def _check_size(self) -> None:
        steps = (_exact(self.high) - self._low) / self._step
        if steps.denominator != 1:
            raise InputError("high", f"must be low plus whole steps, got {self.high!r}")
        if steps + 1 > MAX_VALUES:
            problem = f"gives {int(steps) + 1:,} values; at most {MAX_VALUES:,} are allowed"
            raise InputError("step", problem)
        if max(abs(self.low), abs(self.high)) > _MAX_STEPS * self.step:
            raise InputError("step", "is too small beside the bounds for double precision")

    @cached_property
    def _low(self) -> Fraction:
        return _exact(self.low)

    @cached_property
    def _step(self) -> Fraction:
        return _exact(self.step)

    @cached_property
    def cells(self) -> int:
        """Cells including the one for a missing attribute."""
        return int((_exact(self.high) - self._low) / self._step) + 2

    def find_cell(self, value: float) -> int:
        """Return the cell of a value; `InputError` if it is not on the grid.

        >>> grid = NumberGrid(low=0, high=1, step=0.1)
        >>> grid.cells, grid.find_cell(0), grid.find_cell(0.3), grid.find_cell(-0.0)
        (12, 1, 4, 1)
        """
        if not self.low <= value <= self.high:
            raise InputError("", f"must be from {self.low:g} to {self.high:g}, got {value!r}")
        steps = (_exact(value) - self._low) / self._step
        if steps.denominator != 1:
            raise InputError("", f"must be {self.low:g} plus steps of {self.step:g}, got {value!r}")
        return int(steps) + 1

    def find_first_cell(self, bound: float) -> int:
        """Return the first cell whose value is at least the bound; `cells` if there is none."""
        if bound <= self.low:
            return 1
        if bound > self.high:
            return self.cells
        return math.ceil((_exact(bound) - self._low) / self._step) + 1


def _exact(value: float) -> Fraction:
    """Return the number that people read: 0.1 is a tenth, not the double next to it."""
    return Fraction(repr(value))
