"""Stands in for the execution of decisions where replicas decide: it only records their changes."""

from penstock.control.execution import NOTHING, ApplyResult
from penstock.core.decision import Decision
from penstock.core.frozen_dict import FrozenDict
from penstock.engines.port import Status


class Observation:
    """Reports what replicas have changed as applied, and asks nothing of the engine."""

    def apply_decision(self, decision: Decision | None, at: float) -> ApplyResult:  # noqa: ARG002
        """Return the changes of a decision that is in effect already."""
        if decision is None or not decision.is_change:
            return NOTHING
        return ApplyResult(applied=True, plan=FrozenDict(decision.changes))

    def update_status(self, status: Status, at: float) -> Status:  # noqa: ARG002
        """Return the status; there is no request that could fail."""
        return status
