"""Event times: a pure function of the event number, at a fixed rate or following a workload."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.errors import InputError
from penstock.nexmark.splitmix import Ints
from penstock.workloads.workload import Workload

#: The default rate, in events per second.
RATE = 10_000.0


class Clock(Protocol):
    """Maps event numbers to times."""

    @property
    def rate(self) -> float:
        """Events per second, on average."""

    def after_us(self, numbers: Ints) -> Ints:
        """Return the microseconds from the beginning to each event; the first has number 1."""


@dataclass(frozen=True, slots=True)
class FixedRate:
    """The same number of events in every second.

    >>> FixedRate(2.0).after_us(np.array([1, 4])).tolist()
    [500000, 2000000]
    """

    rate: float = RATE

    def __post_init__(self) -> None:
        # at a lower rate an auction would be open for longer than the largest drawn length
        if not 0.01 <= self.rate <= 1e9:
            raise InputError("rate", f"must be from 0.01 to 1e9 events/s, got {self.rate:g}")

    def after_us(self, numbers: Ints) -> Ints:
        """Return the microseconds from the beginning to each event."""
        return (numbers * (1e6 / self.rate)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class WorkloadClock:
    """Event times of a workload, all kinds together; the workload repeats at its end.

    >>> load = Workload.of_steps([1, 2], step_s=2)
    >>> WorkloadClock(load).after_us(np.arange(1, 9)).tolist()
    [1000000, 2000000, 2500000, 3000000, 3500000, 4000000, 5000000, 6000000]
    """

    load: Workload

    def __post_init__(self) -> None:
        if not self.load.total_records:
            raise InputError("workload", "must offer at least one event")

    @property
    def rate(self) -> float:
        """Events per second, on average."""
        return self.load.mean_rate

    def after_us(self, numbers: Ints) -> Ints:
        """Return the microseconds from the beginning to each event."""
        lap, number = np.divmod(numbers - 1, self.load.total_records)
        # rounding may place the last event of a lap slightly beyond the integral
        reached = np.minimum(number + 1.0, self.load.integral(self.load.duration_s))
        seconds = lap * self.load.duration_s + self.load.when(reached)
        return np.floor(seconds * 1e6).astype(np.int64)
