"""What a policy is: a pure function, with what people and the loop must know about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params
from penstock.core.snapshot import OperatorSnapshot, Snapshot

#: The snapshots of the look-back, oldest first, the present one last.
History = Sequence[Snapshot]
#: The decisions that were carried out, oldest first.
Applied = Sequence[Decision]


def _no_lookback(_params: Any) -> float:
    return 0.0


def _keep_nothing(params: Any, _snapshot: Snapshot) -> Any:
    return params


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A named policy. `decide(history, applied, params)` is pure; the rest describes it."""

    name: str
    #: One line for `penstock policies`.
    summary: str
    #: Where it was published.
    paper: str
    decide: Callable[[History, Applied, Any], Decision]
    params: type[Params] = Params
    #: The measures it looks at, as named in the snapshot.
    measures: tuple[str, ...] = ()
    reads: Literal["operators", "hosts"] = "operators"
    #: Whether more load ever makes it ask for more.
    reacts: bool = True
    #: How many seconds before the present its history must reach.
    lookback_s: Callable[[Any], float] = _no_lookback
    #: Parameters with what had to be measured once and kept, such as service times.
    measure_once: Callable[[Any, Snapshot], Any] = _keep_nothing


def each_operator(
    name: str, snapshot: Snapshot, answer: Callable[[OperatorSnapshot], Target]
) -> Decision:
    """Return the decision of a policy that looks at one operator at a time."""
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
