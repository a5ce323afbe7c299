"""The parallelisms that hindsight chooses from, and how fast they are while they change.

To carry a rate r, an operator that sees v records for each one offered and takes c a second
with one replica needs ceil(r v / c) replicas. So the vectors worth having form a ladder: each
rung carries more than the one below, and costs more.
"""

from dataclasses import dataclass, replace

import numpy as np

from penstock.engines.simulator.fluid.engine import STEP_S
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Rescaling
from penstock.lab.hindsight.labels import BoolArray, FloatArray, IntArray

#: Rungs up to the peak; where there would be more, some are left out at even distances.
MAX_RUNGS = 128
#: Rungs above the peak, to catch up with; few, for they are needed for minutes.
CATCH_UP_RUNGS = 12
CATCH_UP = 2.0
_NOISE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Vectors of replicas, from the cheapest to the most expensive."""

    names: tuple[str, ...]
    #: One row a rung, one column an operator.
    replicas: IntArray
    #: Records offered a second that one replica of each operator carries.
    unit_rates: FloatArray
    state_mb: FloatArray
    native: BoolArray
    #: The rung that carries the peak; those above are there to catch up.
    peak: int

    @property
    def rates(self) -> FloatArray:
        """Records offered a second that each rung carries at full speed."""
        return np.asarray((self.replicas * self.unit_rates).min(axis=1))

    @property
    def totals(self) -> IntArray:
        """Replicas of each rung in all."""
        return np.asarray(self.replicas.sum(axis=1))

    def named(self, rung: int) -> dict[str, int]:
        """Replicas of one rung by operator."""
        return dict(zip(self.names, self.replicas[rung].tolist(), strict=True))

    def thinned(self, most: int) -> "Ladder":
        """About so many rungs, at even distances; that of the peak and those above stay."""
        below = max(2, most - (len(self.replicas) - self.peak))
        if below > self.peak:
            return self
        kept = np.unique(np.linspace(0, self.peak, below).round().astype(np.int64))
        replicas = np.concatenate((self.replicas[kept], self.replicas[self.peak + 1 :]))
        return replace(self, replicas=replicas, peak=len(kept) - 1)

    def keeping(self, fixed: BoolArray, rung: int) -> "Ladder":
        """The rungs up to a given one, with some operators always as they are on that one."""
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
    """Rates above which some operator needs one replica more."""
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
    """Going from one rung of a ladder to another under an engine's rules."""

    ladder: Ladder
    rules: Rescaling

    @property
    def pauses_s(self) -> FloatArray:
        """How long somebody stops, from each rung (row) to each other one (column)."""
        paused = self._paused()
        state_s = self.rules.pause_s_per_gb * (paused @ self.ladder.state_mb) / 1000
        return np.where(paused.any(axis=2), self.rules.pause_s + state_s, 0.0)

    @property
    def settle_s(self) -> float:
        """How long after a change everything is as fast as it will be and the next can come."""
        return float(self.pauses_s.max()) + max(self.rules.warmup_s, self.rules.delay_s)

    @property
    def alike(self) -> bool:
        """Whether it makes no difference from which rung one comes."""
        if self.rules.scope == "job" and self.pauses_s.all():
            return True
        warm = not self.rules.warmup_s or self.rules.warmup_speed == 1
        return warm and not self.pauses_s.any()

    def worth_keeping(self) -> list[BoolArray]:
        """Sets of operators that one might leave as they are, to be spared their long pauses."""
        if self.rules.scope in ("nobody", "job"):
            return []
        pauses = self.ladder.native if self.rules.scope == "native" else True
        own_s = self.rules.pause_s + self.rules.pause_s_per_gb * self.ladder.state_mb / 1000
        own_s = np.where(pauses, own_s, 0.0)
        longest, longer = own_s == own_s.max(), own_s > own_s.min()
        sets = [longest] if np.array_equal(longest, longer) else [longest, longer]
        return [fixed for fixed in sets if fixed.any() and not fixed.all()]

    def rates(self, seconds: int) -> FloatArray:
        """Records/s in each second after a change: from rung, to rung, second.

        If all changes are alike, one row stands for all. The pipeline is as fast as its
        slowest operator, as if nothing could wait between them.
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
            if self.rules.scope == "job":  # cold as a whole, elsewhere only what is added
                cold = np.where(stops | changed[:, :, i, None], after, 0)
            else:
                cold = np.maximum(after - before, 0)
            missing = cold * (1 - self._warmth(at_s - np.where(stops, pause_s, 0.0)))
            working = np.where(stops & (at_s < pause_s - _NOISE), 0.0, after - missing)
            rates = np.minimum(rates, working * self.ladder.unit_rates[i])
        return rates

    def _warmth(self, age_s: FloatArray) -> FloatArray:
        """Speed of new replicas so long after they began; 1 is full speed."""
        if not self.rules.warmup_s:
            return np.ones_like(age_s)
        share = np.clip(age_s / self.rules.warmup_s, 0.0, 1.0)
        return self.rules.warmup_speed + (1 - self.rules.warmup_speed) * share

    def _changed(self) -> BoolArray:
        """Which operators (last axis) change from one rung to another."""
        replicas = self.ladder.replicas
        return np.asarray(replicas[:, None, :] != replicas[None, :, :])

    def _paused(self) -> BoolArray:
        """Which operators (last axis) stop for it."""
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
