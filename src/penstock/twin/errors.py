"""The errors of twins: each figure of a run compared with its twins. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.runs.result_parts import RunScores


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """A figure and the maximum error of a twin, relative (a share) or absolute."""

    name: str
    of: Callable[[RunScores], float | None]
    most: float
    is_share: bool

    def error(self, real: float, twin: float) -> float:
        """Return the signed error of a twin."""
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
    """One figure of a run and of its twins; twins without finished records have no latency."""

    bound: ErrorBound
    real: float | None
    twins: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """Return the mean over the twins."""
        return sum(self.twins) / len(self.twins) if self.twins else None

    @property
    def error(self) -> float | None:
        """Return the error of the mean; None if there is nothing to compare."""
        if self.real is None or self.mean is None:
            return None
        return self.bound.error(self.real, self.mean)

    @property
    def is_inside(self) -> bool:
        """Whether the error is within the bound, or neither side has the figure."""
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
    """A run with its spec, and the errors of its twins."""

    name: str
    query: str
    workload: str
    policy: str
    figures: tuple[TwinErrors, ...]
    build_args: Mapping[str, Any] = field(default_factory=FrozenDict)
    speed_up: float = 1.0
    rate_scale: float = 1.0
    #: Whether the profile was fitted to this run; then the twin is no prediction.
    is_fitted: bool = False
    #: Mean replicas of each operator: of the run, and of each twin.
    operators: Mapping[str, tuple[float, Sequence[float]]] = field(default_factory=FrozenDict)

    @property
    def title(self) -> str:
        """Return query, workload and policy in one line."""
        return f"{self.query} under {self.workload}, {self.policy}"

    @property
    def is_inside(self) -> bool:
        """Whether every figure is within its bound."""
        return all(figure.is_inside for figure in self.figures)
