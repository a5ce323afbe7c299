"""Rescaling in the fluid simulator: requested and running replicas, pauses and warm-up."""

from collections.abc import Iterator, Mapping, Sequence

from penstock.engines.events import ResumedEvent, RunningEvent
from penstock.engines.simulator.model import SimulatedOperator
from penstock.engines.simulator.profile import Rescaling


class RescaleInProgress:
    """Tracks requested and running replicas of all operators, and the change in progress."""

    def __init__(self, rescaling: Rescaling, operators: Sequence[SimulatedOperator]) -> None:
        self._rules, self._operators = rescaling, operators
        self.requested = [op.replicas for op in operators]
        self.running = [op.replicas for op in operators]
        self._effect_s: float | None = None
        self._requested_s = 0.0
        never = -1e18
        self._paused_until = [never] * len(operators)
        #: Time since which each operator has its current replicas, and its replicas before that.
        self._since = [never] * len(operators)
        self._before = [op.replicas for op in operators]
        self._resumes: float | None = None
        #: Time until which all operators are paused, and from which all run at full speed.
        self._stopped_until = self._full_speed_from_s = never
        self._full_speeds = [1.0] * len(operators)

    @property
    def is_pending(self) -> bool:
        """Whether a change is not effective yet, or a pause not over."""
        return self._effect_s is not None or self._resumes is not None

    def pausing_operators(self) -> frozenset[str]:
        """Operators that stop when their parallelism changes."""
        match self._rules.scope:
            case "nobody":
                return frozenset()
            case "native":
                return frozenset(op.name for op in self._operators if op.native)
            case _:
                return frozenset(op.name for op in self._operators)

    def request(self, wanted: Mapping[int, int], now_s: float) -> None:
        """Request replicas; the change takes effect after the delay of the engine."""
        for i, k in wanted.items():
            self.requested[i] = k
        self._requested_s = now_s
        self._effect_s = now_s + self._rules.delay_s

    def advance(self, now_s: float) -> Iterator[ResumedEvent | RunningEvent]:
        """Apply the change that is due; yield events for it and for the end of a pause."""
        if self._resumes is not None and now_s >= self._resumes - 1e-9:
            self._resumes = None
            yield ResumedEvent(at=now_s, after_s=now_s - self._requested_s)
        if self._effect_s is None or now_s < self._effect_s - 1e-9:
            return
        self._effect_s = None
        changed = [i for i, k in enumerate(self.requested) if k != self.running[i]]
        if not changed:
            return
        self._pause(changed, now_s)
        for i in changed:
            self._before[i], self.running[i] = self.running[i], self.requested[i]
            self._since[i] = max(now_s, self._paused_until[i])
            yield RunningEvent(
                at=now_s,
                operator=self._operators[i].name,
                replicas=self.running[i],
                before=self._before[i],
            )
        self._stopped_until = min(self._paused_until)
        # slightly later, because sums of times have rounding errors
        self._full_speed_from_s = (
            max(*self._paused_until, max(self._since) + self._rules.warmup_s) + 1e-6
        )

    def stops_all(self, now_s: float) -> bool:
        """Whether the whole pipeline is paused."""
        return now_s < self._stopped_until - 1e-9

    def speeds(self, now_s: float) -> list[float]:
        """Return the speed of each operator's replicas: 1 at full speed, 0 while paused."""
        if now_s > self._full_speed_from_s:
            return self._full_speeds
        return [self._speed(i, now_s) for i in range(len(self.running))]

    def _speed(self, i: int, now_s: float) -> float:
        if now_s < self._paused_until[i] - 1e-9:
            return 0.0
        rules, age_s = self._rules, now_s - self._since[i]
        if age_s >= rules.warmup_s:
            return 1.0
        warm = rules.warmup_speed + (1 - rules.warmup_speed) * age_s / rules.warmup_s
        if rules.scope == "job":
            return warm
        # only added replicas warm up
        old = min(self._before[i], self.running[i])
        return (old + (self.running[i] - old) * warm) / self.running[i]

    def _pause(self, changed: Sequence[int], now_s: float) -> None:
        rules = self._rules
        paused = {
            "nobody": [],
            "native": [i for i in changed if self._operators[i].native],
            "operator": list(changed),
            "job": list(range(len(self._operators))),
        }[rules.scope]
        state_gb = sum(self._operators[i].state_mb for i in paused) / 1000
        length_s = rules.pause_s + rules.pause_s_per_gb * state_gb
        if not paused or length_s <= 0:
            return
        self._resumes = now_s + length_s
        for i in paused:
            self._paused_until[i] = self._resumes
            if rules.scope == "job":
                self._since[i] = self._resumes
