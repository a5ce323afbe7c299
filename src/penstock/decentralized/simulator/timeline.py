"""What a simulation records: series of each operator, scaling actions, and record totals."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.decentralized.simulator.setup import DecentralizedSetup


@dataclass(slots=True, kw_only=True)
class ScalingAction:
    """One duplication (copies above 0) or one deletion (copies 0), with its messages."""

    operator: int
    step: int
    copies: int
    #: Successors and predecessors that the instance informs.
    neighbours: int
    #: Messages of this action that arrived.
    messages: int = 0
    #: Copies that got their start signal.
    started: int = 0
    #: The step in which all copies were active or the instance ended; None: not yet.
    end_step: int | None = None


@dataclass(slots=True)
class OperatorSeries:
    """One value per step of one operator."""

    load: list[int] = field(default_factory=list)
    #: Instances that process records.
    instances: list[int] = field(default_factory=list)
    #: Messages that arrived in the step, on behalf of actions of this operator.
    messages: list[int] = field(default_factory=list)
    #: Records that wait at the end of the step.
    waiting: list[int] = field(default_factory=list)
    #: Records that instances processed in the step.
    processed: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTotals:
    """Records of a whole simulation; those not processed are lost or still wait."""

    sent: int
    processed: int
    lost: int
    #: Records that wait at instances without their start signal.
    waiting_at_idle: int

    @property
    def waiting(self) -> int:
        """Records that wait or are under way at the end."""
        return self.sent - self.processed - self.lost


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingTimeline:
    """One simulation from its first step to its last."""

    setup: DecentralizedSetup
    operators: tuple[OperatorSeries, ...]
    actions: tuple[ScalingAction, ...]
    #: How many instances tested their load, by operator and step.
    deciders: Mapping[tuple[int, int], int]
    records: RecordTotals

    @property
    def total(self) -> OperatorSeries:
        """The sums over all operators."""
        series = self.operators
        return OperatorSeries(
            load=_add([each.load for each in series]),
            instances=_add([each.instances for each in series]),
            messages=_add([each.messages for each in series]),
            waiting=_add([each.waiting for each in series]),
            processed=_add([each.processed for each in series]),
        )


def _add(columns: list[list[int]]) -> list[int]:
    return [sum(values) for values in zip(*columns, strict=True)]
