"""Replays recorded snapshots with another policy: open loop, nothing is applied.

The snapshots show the effects of the recorded decisions. The replayed policy and its guards
therefore see these as applied, and not their own. The recorded policy decides the same again.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypedDict

from penstock.control.decider import Decider
from penstock.control.loop import Tick
from penstock.core.decision import Decision
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """One recorded snapshot: what was decided then, and what another policy answers."""

    at: float
    recorded: Decision
    other: Decision

    @property
    def same(self) -> bool:
        """Whether both want the same of every operator."""
        return wanted(self.recorded) == wanted(self.other)


def replay(ticks: Iterable[Tick], decider: Decider) -> Iterator[ReplayAnswer]:
    """Ask a fresh decider about every snapshot that was answered, in their order."""
    for tick in ticks:
        if tick.snapshot is not None and tick.decision is not None:
            yield ReplayAnswer(
                at=tick.at, recorded=tick.decision, other=decider.decide(tick.snapshot)
            )
        _remember(tick, decider)


def recall(
    ticks: Iterable[Tick], decider: Decider, operators: Collection[str] | None = None
) -> None:
    """Restore the memory of a decider from the ticks of a resumed run; the policy is not called.

    With `operators`, ticks of a pipeline with other operators are left out: policies look each
    operator up in all snapshots that they remember.
    """
    for tick in ticks:
        snapshot = tick.snapshot
        if operators is not None and snapshot and set(snapshot.operators) != set(operators):
            continue
        if tick.snapshot is not None and tick.decision is not None:
            decider.recall(tick.snapshot, tick.decision)
        _remember(tick, decider)


def _remember(tick: Tick, decider: Decider) -> None:
    """Remember what became of a tick; what the policy failed at, it has seen all the same."""
    if tick.snapshot is not None and tick.decision is None:
        with suppress(InputError):  # which may be why there is no decision
            decider.see(tick.snapshot)
    if tick.applied and tick.decision is not None:
        decider.note_applied(tick.decision)


def wanted(decision: Decision) -> dict[str, int]:
    """The replicas that a decision wants, by operator."""
    return {name: target.wanted for name, target in decision.targets.items()}


class RecordedAndOther(TypedDict):
    """A figure of the recorded policy and of the other one."""

    recorded: float | None
    other: float | None


class OperatorSummary(TypedDict):
    """How often both policies want the same, and the replicas that each wants on average."""

    same_share: float | None
    wanted: RecordedAndOther


class ReplaySummary(OperatorSummary):
    """The same over all operators, the ticks and wanted changes, and the figures by operator."""

    ticks: int
    changes: RecordedAndOther
    operators: dict[str, OperatorSummary]


def summary(answers: Sequence[ReplayAnswer]) -> ReplaySummary:
    """Summarise the answers of a replay."""
    pairs = [(wanted(answer.recorded), wanted(answer.other)) for answer in answers]
    names = dict.fromkeys(name for recorded, _ in pairs for name in recorded)
    totals = [(sum(recorded.values()), sum(other.values())) for recorded, other in pairs]
    single = {name: [(a.get(name, 0), b.get(name, 0)) for a, b in pairs] for name in names}
    return {
        "ticks": len(answers),
        "same_share": _mean([recorded == other for recorded, other in pairs]),
        "wanted": _means(totals),
        "changes": {
            "recorded": sum(answer.recorded.is_change for answer in answers),
            "other": sum(answer.other.is_change for answer in answers),
        },
        "operators": {
            name: {"same_share": _mean([a == b for a, b in both]), "wanted": _means(both)}
            for name, both in single.items()
        },
    }


def _means(pairs: Sequence[tuple[int, int]]) -> RecordedAndOther:
    return {"recorded": _mean([a for a, _ in pairs]), "other": _mean([b for _, b in pairs])}


def _mean(values: Sequence[float]) -> float | None:
    return float(f"{sum(values) / len(values):.6g}") if values else None
