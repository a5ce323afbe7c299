"""The parallelisms that hindsight chooses from, and their speeds during a change.

An operator that gets v records per offered record and processes c records/s with one replica
needs ceil(r v / c) replicas for an offered rate r. So the useful vectors form a ladder: each rung
has a higher capacity than the one below, and a higher cost.
"""

from dataclasses import dataclass, replace

import numpy as np

from penstock.engines.simulator.fluid.engine import STEP_S
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Rescaling
from penstock.lab.hindsight.labels import BoolArray, FloatArray, IntArray

#: Maximum rungs up to the peak; above it, rungs are left out at even distances.
MAX_RUNGS = 128
#: Rungs above the peak, to drain a backlog; a few suffice for these short times.
CATCH_UP_RUNGS = 12
CATCH_UP = 2.0
_NOISE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Vectors of replicas, from the cheapest to the most expensive."""

    names: tuple[str, ...]
    #: One row per rung, one column per operator.
    replicas: IntArray
    #: Capacity of one replica of each operator, in offered records/s.
    unit_rates: FloatArray
    state_mb: FloatArray
    native: BoolArray
    #: The lowest rung with enough capacity for the peak; those above serve to catch up.
    peak: int

    @property
    def rates(self) -> FloatArray:
        """Return the capacity of each rung at full speed, in offered records/s."""
        return np.asarray((self.replicas * self.unit_rates).min(axis=1))

    @property
    def totals(self) -> IntArray:
        """Return the total replicas of each rung."""
        return np.asarray(self.replicas.sum(axis=1))

    def named(self, rung: int) -> dict[str, int]:
        """Return the replicas of one rung by operator."""
        return dict(zip(self.names, self.replicas[rung].tolist(), strict=True))

    def thinned(self, most: int) -> "Ladder":
        """Return about `most` rungs at even distances; the peak and the rungs above it stay."""
        below = max(2, most - (len(self.replicas) - self.peak))
        if below > self.peak:
            return self
        kept = np.unique(np.linspace(0, self.peak, below).round().astype(np.int64))
        replicas = np.concatenate((self.replicas[kept], self.replicas[self.peak + 1 :]))
        return replace(self, replicas=replicas, peak=len(kept) - 1)

    def keeping(self, fixed: BoolArray, rung: int) -> "Ladder":
        """Return the rungs up to a given one; fixed operators always have the replicas of it."""
        replicas = np.where(fixed, self.replicas[rung], self.replicas[: rung + 1])
        replicas = np.unique(replicas, axis=0)
        return replace(self, replicas=replicas, peak=len(replicas) - 1)


def build_ladder(pipeline: SimulatedPipeline, profile: Profile, peak_rate: float) -> Ladder:
    """Return the rungs from one replica each up to twice the peak, within the bounds.

    >>> from penstock.engines.simulator.model import SimulatedOperator
    >>> a = SimulatedOperator(name="a", capacity_rate=4, sent={"b": 0.5})
    >>> b = SimulatedOperator(name="b", capacity_rate=3, upstream=("a",))
    >>> two = SimulatedPipeline(name="two", operators=(a, b))
    >>> build_ladder(two, Profile(name="p", summary=""), 8.0).replicas.tolist()
    [[1, 1], [2, 1], [2, 2], [3, 2], [4, 3]]
    """
    visits, operators = pipeline.visits(), pipeline.operators
    unit_rates = np.array(
        [op.capacity_rate / visits[op.name] if visits[op.name] else np.inf for op in operators]
    )
    bounds = np.array([op.max_replicas or profile.max_replicas or np.inf for op in operators])
    rates = np.minimum(_rates(unit_rates, peak_rate), (bounds * unit_rates).min())
    needed = np.maximum(np.ceil(rates[:, None] / unit_rates - _NOISE), 1)
    replicas = np.unique(needed, axis=0).astype(np.int64)
    carries = (replicas * unit_rates).min(axis=1) >= peak_rate * (1 - _NOISE)
    return Ladder(
        names=pipeline.names,
        replicas=replicas,
        peak=int(np.argmax(carries)) if carries.any() else len(replicas) - 1,
        unit_rates=unit_rates,
        state_mb=np.array([op.state_mb for op in operators]),
        native=np.array([op.native for op in operators]),
    )


def _rates(unit_rates: FloatArray, peak_rate: float) -> FloatArray:
    """Return the rates above which some operator needs one more replica."""
    reached = unit_rates[np.isfinite(unit_rates)]
    if np.sum(peak_rate / reached) > MAX_RUNGS:
        needed = np.linspace(0, peak_rate, MAX_RUNGS)
    else:
        steps = (np.arange(1, peak_rate // unit + 1) * unit for unit in reached)
        needed = np.concatenate(([0.0], *steps))
    above = np.linspace(peak_rate, CATCH_UP * peak_rate, CATCH_UP_RUNGS + 1)
    return np.concatenate((needed, above))


@dataclass(frozen=True, slots=True)
class Changes:
    """The effects of changes between rungs of a ladder under the rules of an engine."""

    ladder: Ladder
    rules: Rescaling

    @property
    def pauses_s(self) -> FloatArray:
        """Return the pause of a change from each rung (row) to each other one (column)."""
        paused = self._paused()
        state_s = self.rules.pause_s_per_gb * (paused @ self.ladder.state_mb) / 1000
        return np.where(paused.any(axis=2), self.rules.pause_s + state_s, 0.0)

    @property
    def settle_s(self) -> float:
        """Return the time until a change has its full effect and the next one can start."""
        return float(self.pauses_s.max()) + max(self.rules.warmup_s, self.rules.delay_s)

    @property
    def alike(self) -> bool:
        """Whether the effect of a change does not depend on the rung before it."""
        if self.rules.scope == "job" and self.pauses_s.all():
            return True
        warm = not self.rules.warmup_s or self.rules.warmup_speed == 1
        return warm and not self.pauses_s.any()

    def worth_keeping(self) -> list[BoolArray]:
        """Return sets of operators with long pauses, which may be cheaper without changes."""
        if self.rules.scope in ("nobody", "job"):
            return []
        pauses = self.ladder.native if self.rules.scope == "native" else True
        own_s = self.rules.pause_s + self.rules.pause_s_per_gb * self.ladder.state_mb / 1000
        own_s = np.where(pauses, own_s, 0.0)
        longest, longer = own_s == own_s.max(), own_s > own_s.min()
        sets = [longest] if np.array_equal(longest, longer) else [longest, longer]
        return [fixed for fixed in sets if fixed.any() and not fixed.all()]

    def rates(self, seconds: int) -> FloatArray:
        """Return records/s in each second after a change: from rung, to rung, second.

        If the rung before does not matter, there is only one row. The pipeline is as fast as
        its slowest operator, as if nothing could wait between operators.
        """
        rows = slice(1) if self.alike else slice(None)
        pause_s = self.pauses_s[rows, :, None]
        paused, changed = self._paused()[rows] & (pause_s > 0), self._changed()[rows]
        at_s = np.arange(seconds, dtype=np.float64) * STEP_S
        rates = np.full((*pause_s.shape[:2], seconds), np.inf)
        for i in np.flatnonzero(np.isfinite(self.ladder.unit_rates)):
            before = self.ladder.replicas[rows, None, i, None]
            after = self.ladder.replicas[None, :, i, None]
            stops = paused[:, :, i, None]
            if self.rules.scope == "job":  # all replicas are cold; in other scopes only new ones
                cold = np.where(stops | changed[:, :, i, None], after, 0)
            else:
                cold = np.maximum(after - before, 0)
            missing = cold * (1 - self._warmth(at_s - np.where(stops, pause_s, 0.0)))
            working = np.where(stops & (at_s < pause_s - _NOISE), 0.0, after - missing)
            rates = np.minimum(rates, working * self.ladder.unit_rates[i])
        return rates

    def _warmth(self, age_s: FloatArray) -> FloatArray:
        """Return the speed of new replicas by their age; 1 is full speed."""
        if not self.rules.warmup_s:
            return np.ones_like(age_s)
        share = np.clip(age_s / self.rules.warmup_s, 0.0, 1.0)
        return self.rules.warmup_speed + (1 - self.rules.warmup_speed) * share

    def _changed(self) -> BoolArray:
        """Return which operators (last axis) change from one rung to another."""
        replicas = self.ladder.replicas
        return np.asarray(replicas[:, None, :] != replicas[None, :, :])

    def _paused(self) -> BoolArray:
        """Return which operators (last axis) stop for a change."""
        changed = self._changed()
        match self.rules.scope:
            case "nobody":
                return np.zeros_like(changed)
            case "native":
                return changed & self.ladder.native
            case "operator":
                return changed
            case _:
                return np.ones_like(changed)
