"""Spikes: sudden minutes of more or less load, on top of any workload.

As in the evaluation thesis' workbench: in a quiet minute a spike upward and one downward
are drawn; the spike begins with the next minute and lasts 1 to `spike_minutes` minutes,
each with its own size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes(Params):
    """How often spikes come, how long they stay and how high they are."""

    spike_up: float = param(0.0, "chance of a spike upward, each quiet minute", low=0, high=1)
    spike_down: float = param(0.0, "chance of a spike downward, each quiet minute", low=0, high=1)
    spike_minutes: int = param(3, "longest spike", unit="min", low=1)
    spike_low: int | None = param(
        None, "smallest spike (if not given, half the largest)", unit="records/s", low=0
    )
    spike_high: int | None = param(
        None, "largest spike (if not given, as high as the load)", unit="records/s", low=0
    )

    def check(self) -> None:
        """Refuse a smallest size above the largest."""
        if self.spike_low is not None and (self.spike_high or 0) < self.spike_low:
            raise InputError(
                "spike_low",
                f"must be at most spike_high ({self.spike_high}), got {self.spike_low}",
                "give both, the smaller one first",
            )

    @property
    def wanted(self) -> bool:
        """Whether a spike can ever come."""
        return self.spike_up > 0 or self.spike_down > 0


def draw_spikes(spikes: Spikes, highest: int, random: JavaRandom) -> Iterator[int]:
    """Yield what spikes add to each minute, records/s; `highest` if no size is given.

    A quiet minute costs two draws even if spikes are off, so that a pattern that draws
    from the same generator is the same list with and without this one.
    """
    high = highest if spikes.spike_high is None else spikes.spike_high
    low = high // 2 if spikes.spike_low is None else spikes.spike_low
    while True:
        up = random.next_double() < spikes.spike_up
        down = random.next_double() < spikes.spike_down
        sign = int(up) - int(down)
        if up and down:
            sign = 1 if random.next_double() < 0.5 else -1
        length = 1 + int(random.next_double() * spikes.spike_minutes) if sign else 0
        yield 0
        for _ in range(length):
            yield sign * int(low + random.next_double() * (high - low))


def with_spikes(load: Workload, spikes: Spikes, seed: int) -> Workload:
    """Return a workload with spikes on top; it never falls below 0."""
    if not spikes.wanted:
        return load
    minutes = ceil(load.duration_s / 60)
    drawn = draw_spikes(spikes, int(load.peak_rate), JavaRandom(seed))
    return load.plus_steps(islice(drawn, minutes))
