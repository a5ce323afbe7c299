"""A policy: a pure function, its parameters, and everything that other rooms need to know of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params
from penstock.core.snapshot import OperatorSnapshot, Snapshot

#: The snapshots of the look-back, oldest first, the present one last.
History = Sequence[Snapshot]
#: The decisions that were carried out, oldest first.
Applied = Sequence[Decision]


Line = Literal["solid", "dashed", "dotted", "mixed"]


@dataclass(frozen=True, slots=True)
class PolicyStyle:
    """Colour, line and mark of a policy in pictures; `mark` is a marker of matplotlib."""

    #: A colour such as "#0072B2".
    colour: str
    #: How the line is drawn.
    line: Line = "solid"
    #: A marker of matplotlib.
    mark: str = "o"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts of a run that are known before it starts. A fact that is not known is None or empty."""

    #: Latency that the run should stay below.
    objective_s: float | None = None
    #: Highest rate that the workload offers to each source, in records/s.
    peak_rates: Mapping[str, float] = field(default_factory=FrozenDict)
    #: Replicas of each operator that carry this peak, if the engine knows capacities.
    peak_replicas: Mapping[str, int] = field(default_factory=FrozenDict)


def _no_lookback(_params: Any) -> float:
    return 0.0


def _no_params(_facts: RunFacts) -> Mapping[str, Any]:
    return {}


def _keep_nothing(params: Any, _snapshot: Snapshot) -> Any:
    return params


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A named policy. `decide(history, applied, params)` is pure; the rest describes it."""

    #: The name that commands and specs use.
    name: str
    #: One line for `penstock policies`.
    summary: str
    #: Where it was published.
    paper: str
    #: The pure function: decide(history, applied, params) -> Decision.
    decide: Callable[[History, Applied, Any], Decision]
    #: The class of its parameters.
    params: type[Params] = Params
    #: Parameters that depend on the run, if the user does not set them.
    params_for: Callable[[RunFacts], Mapping[str, Any]] = _no_params
    #: The measures it looks at, as named in the snapshot.
    measures: tuple[str, ...] = ()
    #: Whether it decides on operators, or on hosts and their slices.
    reads: Literal["operators", "hosts"] = "operators"
    #: Whether replicas decide by it alone in a run without a controller.
    decides_alone: bool = False
    #: Whether more load ever makes it ask for more.
    reacts: bool = True
    #: How many seconds before the present its history must reach.
    lookback_s: Callable[[Any], float] = _no_lookback
    #: Parameters with what had to be measured once and kept, such as service times.
    measure_once: Callable[[Any, Snapshot], Any] = _keep_nothing
    #: How pictures show it; without one, pictures choose a free style.
    style: PolicyStyle | None = None


def each_operator(
    name: str, snapshot: Snapshot, answer: Callable[[OperatorSnapshot], Target]
) -> Decision:
    """Return the decision of a policy that looks at one operator at a time.

    >>> from penstock import OperatorSnapshot, Reason, Snapshot, Target, each_operator
    >>> now = Snapshot(at=0, operators={"map": OperatorSnapshot(name="map", parallelism=2)})
    >>> double = lambda op: Target(op.parallelism, 2 * op.parallelism, Reason.FITS)
    >>> each_operator("double", now, double).changes
    {'map': 4}
    """
    targets = {op.name: answer(op) for op in snapshot.operators.values()}
    return Decision(snapshot.at, name, FrozenDict(targets))


def within(history: History, window_s: float) -> list[Snapshot]:
    """Return the snapshots that are at most `window_s` seconds older than the present one."""
    oldest = history[-1].at - window_s
    return [snapshot for snapshot in history if snapshot.at >= oldest - 1e-9]


def trim(history: History, lookback_s: float) -> list[Snapshot]:
    """Return what a policy with that look-back needs: its window, and one snapshot before.

    The one before shows what held at the window's start, which falls between two
    snapshots unless the interval divides the window.
    """
    kept = within(history, lookback_s)
    before = len(history) - len(kept) - 1
    return [history[before], *kept] if before >= 0 else kept
