"""Streaming-DRA: Spark's old dynamic allocation for DStreams, by the ratio of a batch's time.

Apache Spark, SPARK-12133 (`spark.streaming.dynamicAllocation`): every 60 s compare the
mean time of a batch with the batch interval. Here the ratio is the operator's busy share.
"""

from dataclasses import dataclass

from penstock.core.decision import Decision, Target, keep
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot
from penstock.errors import InputError

RATIO = "mean busy ratio of the last {interval} s is {ratio}, against {down} to {up}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingDraParams(Params):
    """Parameters of streaming-DRA."""

    interval_s: float = param(60.0, "how often it acts", unit="s", low=0, above=True)
    up: float = param(0.9, "ratio at or above which replicas are added", low=0, above=True)
    down: float = param(0.3, "ratio at or below which one is removed", low=0)

    def check(self) -> None:
        """The lower ratio must be below the upper one."""
        if self.down >= self.up:
            raise InputError("down", f"must be below up ({self.up:g}), got {self.down:g}")


def streaming_dra(history: History, applied: Applied, params: StreamingDraParams) -> Decision:
    """Add max(round(ratio), 1) replicas to a busy operator, take one from an idle one.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="map", parallelism=2, busy=0.95)
    >>> streaming_dra([Snapshot(at=0, operators={"map": op})], [], StreamingDraParams()).changes
    {'map': 3}
    """
    now, recent = history[-1], within(history, params.interval_s)
    acted = applied[-1].at if applied else None
    waiting = acted is not None and now.at - acted < params.interval_s

    def answer(op: OperatorSnapshot) -> Target:
        ratios = [
            past.operators[op.name].busy
            for past in recent
            if op.name in past.operators and past.operators[op.name].busy is not None
        ]
        if op.busy is None or not ratios:
            return keep(op.parallelism, Reason.METRICS_MISSING)
        if waiting:
            return keep(op.parallelism, Reason.WAITING)
        return _target(op, sum(r for r in ratios if r is not None) / len(ratios), params)

    return each_operator("streaming-dra", now, answer)


def _target(op: OperatorSnapshot, ratio: float, params: StreamingDraParams) -> Target:
    k = op.parallelism
    numbers = {
        "interval": params.interval_s,
        "ratio": ratio,
        "down": params.down,
        "up": params.up,
    }
    if ratio >= params.up:
        more = max(round(ratio), 1)
        return Target(k, k + more, Reason.UTILISATION_ABOVE_TARGET, RATIO, numbers)
    if ratio <= params.down and k > 1:
        return Target(k, k - 1, Reason.UTILISATION_BELOW_TARGET, RATIO, numbers)
    reason = Reason.AT_MINIMUM if ratio <= params.down else Reason.UTILISATION_AT_TARGET
    return Target(k, k, reason, RATIO, numbers)


POLICY = Policy(
    name="streaming-dra",
    summary="Spark's old rule for DStreams: batch time against batch interval",
    paper="Apache Spark, SPARK-12133",
    decide=streaming_dra,
    params=StreamingDraParams,
    measures=("busy",),
    lookback_s=lambda params: float(params.interval_s),
    style=PolicyStyle("#117733", "dashed", "p"),
)
