"""Thresholds on the queue length: one replica more, one less, or hold.

Russo Russo, Schiazza, Cardellini, "Elastic Pulsar Functions for Distributed Stream
Processing", ICPE 2021 Companion, section 4.1.
"""

from dataclasses import dataclass

from penstock.core.decision import Decision, Target, keep
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot
from penstock.errors import InputError

QUEUE = "queue {queue} against {t_in} to {t_out}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdParams(Params):
    """Parameters of the threshold policy."""

    t_in: float = param(50.0, "give up a replica at or below this queue", unit="records", low=0)
    t_out: float = param(150.0, "add a replica above this queue", unit="records", low=0)

    def check(self) -> None:
        """The lower threshold must be below the upper one."""
        if self.t_in >= self.t_out:
            raise InputError("t_in", f"must be below t_out ({self.t_out:g}), got {self.t_in:g}")


def threshold(history: History, _applied: Applied, params: ThresholdParams) -> Decision:
    """Step by one replica at a time towards a queue between the two thresholds.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="map", parallelism=3, queue=151)
    >>> threshold([Snapshot(at=0, operators={"map": op})], [], ThresholdParams()).changes
    {'map': 4}
    """
    return each_operator("threshold", history[-1], lambda op: _target(op, params))


def _target(op: OperatorSnapshot, params: ThresholdParams) -> Target:
    k = op.parallelism
    if op.queue is None:
        return keep(k, Reason.METRICS_MISSING)
    numbers = {"queue": op.queue, "t_in": params.t_in, "t_out": params.t_out}
    if op.queue > params.t_out:
        # the paper's own exceptions: never above the maximum, never below one
        if op.max_parallelism is not None and k >= op.max_parallelism:
            return keep(k, Reason.AT_MAXIMUM, QUEUE, **numbers)
        return Target(k, k + 1, Reason.QUEUE_ABOVE_THRESHOLD, QUEUE, numbers)
    if op.queue <= params.t_in:
        if k == 1:
            return keep(k, Reason.AT_MINIMUM, QUEUE, **numbers)
        return Target(k, k - 1, Reason.QUEUE_BELOW_THRESHOLD, QUEUE, numbers)
    return keep(k, Reason.QUEUE_IN_RANGE, QUEUE, **numbers)


POLICY = Policy(
    name="threshold",
    summary="one replica more or less when the queue leaves a range",
    paper="Elastic Pulsar Functions, 2021, 4.1",
    decide=threshold,
    params=ThresholdParams,
    measures=("queue",),
    style=PolicyStyle("#999933", "mixed", "d"),
)
