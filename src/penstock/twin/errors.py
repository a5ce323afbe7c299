"""How far a twin is from its run, figure by figure. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.runs.result_parts import RunScores


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """A figure, and how far the twin may be off: a share of the real one, or a number."""

    name: str
    of: Callable[[RunScores], float | None]
    most: float
    is_share: bool

    def error(self, real: float, twin: float) -> float:
        """Return how far off it is, with its sign."""
        if not self.is_share:
            return twin - real
        return twin / real - 1 if real else (0.0 if not twin else float("inf"))


BOUNDS = (
    ErrorBound(name="mean replicas", of=lambda f: f.replicas.avg, most=0.15, is_share=True),
    ErrorBound(name="mean latency, s", of=lambda f: f.latency_s.avg, most=0.25, is_share=True),
    ErrorBound(name="rescales", of=lambda f: f.rescales, most=2.0, is_share=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinErrors:
    """One figure of a run and of those twins that have it; some tell no record, so no latency."""

    bound: ErrorBound
    real: float | None
    twins: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """Mean over the twins."""
        return sum(self.twins) / len(self.twins) if self.twins else None

    @property
    def error(self) -> float | None:
        """How far the mean is off; None if there is nothing to compare."""
        if self.real is None or self.mean is None:
            return None
        return self.bound.error(self.real, self.mean)

    @property
    def is_inside(self) -> bool:
        """Whether it is within the bound, or neither has it."""
        if self.error is None:
            return self.real is None and self.mean is None
        return abs(self.error) <= self.bound.most + 1e-9


def compare_figures(real: RunScores, twins: Sequence[RunScores]) -> tuple[TwinErrors, ...]:
    """Compare a run with its twins."""
    return tuple(
        TwinErrors(
            bound=bound,
            real=bound.of(real),
            twins=tuple(value for twin in twins if (value := bound.of(twin)) is not None),
        )
        for bound in BOUNDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCell:
    """A run with what was asked of it, and how far its twins are off."""

    name: str
    query: str
    workload: str
    policy: str
    figures: tuple[TwinErrors, ...]
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    speed_up: float = 1.0
    rate_scale: float = 1.0
    #: Whether the profile was fitted to this very run, which then predicts nothing.
    is_fitted: bool = False
    #: Mean replicas of each operator: of the run, and of each twin.
    operators: Mapping[str, tuple[float, Sequence[float]]] = field(default_factory=FrozenDict)

    @property
    def title(self) -> str:
        """One line that says what ran."""
        return f"{self.query} under {self.workload}, {self.policy}"

    @property
    def is_inside(self) -> bool:
        """Whether every figure is within its bound."""
        return all(one.is_inside for one in self.figures)
