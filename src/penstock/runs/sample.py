"""Values of a run of any length: all of them at first, an even share of them later."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

#: Beyond so many values every second one is left out, again and again. At one value a tick of
#: 15 s that is after three and a half days.
MAX_VALUES = 20_000


class Sample:
    """Values in the order in which they came; their number, sum and maximum are exact.

    >>> sample = Sample(most=4)
    >>> for value in range(10):
    ...     sample.add(value)
    >>> list(sample.values), sample.count, sample.mean, sample.max
    ([0.0, 4.0, 8.0], 10, 4.5, 9)
    """

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most, self._step = most, 1
        self._values = array("d")
        self.count, self._total = 0, 0.0
        self.max = 0.0

    def add(self, value: float) -> None:
        """Take one more value, which is not negative."""
        if self.count % self._step == 0:
            if len(self._values) == self._most:
                self._values, self._step = self._values[::2], self._step * 2
            if self.count % self._step == 0:
                self._values.append(value)
        self.count += 1
        self._total += value
        self.max = max(self.max, value)

    def __bool__(self) -> bool:
        return bool(self.count)

    @property
    def values(self) -> Sequence[float]:
        """All values, or every second, fourth, ... of them."""
        return self._values

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return self._total / self.count

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        numbers = {"count": self.count, "total": self._total, "max": self.max}
        return {**numbers, "step": self._step, "values": self._values.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Sample":
        """Read what `to_json` wrote."""
        sample = cls()
        sample.count, sample._total, sample.max = data["count"], data["total"], data["max"]
        sample._step, sample._values = data["step"], array("d", data["values"])
        return sample
