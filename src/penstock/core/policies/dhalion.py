"""Dhalion: find the bottleneck by back-pressure and growing lag, else shrink what is healthy.

Floratou et al., "Dhalion: Self-Regulating Stream Processing in Heron", VLDB 2017, in the
form of the evaluation thesis (4.2 and 6.7.1). The thesis prints the factor b / (1 - b)
and means 1 / (1 - b); it says "factor 1.2" for shrinking, its code multiplies by 0.8.
"""

from dataclasses import dataclass

from penstock.core.bottlenecks import Bottlenecks, find_bottlenecks
from penstock.core.decision import Decision, Target, keep
from penstock.core.numbers import ceil, floor
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot

SOURCE = (
    "factor = 1 + queue growth {growth} / input {input} = {factor} (from 1 to 10); "
    "wanted = ceil({k} x {factor}) = {wanted}"
)
INNER = (
    "its upstream is back-pressured {b} of the time (at most 0.9); factor = 1 / (1 - {b}) = "
    "{factor}; wanted = ceil({k} x {factor}) = {wanted}"
)
SHRINK = "no bottleneck, {lag}; wanted = floor({k} x {scale_down}) = {wanted}, at least 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class DhalionParams(Params):
    """Parameters of Dhalion."""

    backpressure: float = param(
        0.1, "share of time above which an operator is back-pressured", low=0, high=1
    )
    lag_rate: float = param(1000.0, "queue growth of a slow source", unit="records/s", low=0)
    scale_down: float = param(0.8, "factor for healthy operators", low=0, above=True, high=1)
    buffer_lag: float = param(0.2, "input buffer use that counts as no lag", low=0, high=1)
    queue_lag: float = param(
        10_000.0, "source queue below which there is no lag", unit="records", low=0
    )


def dhalion(history: History, _applied: Applied, params: DhalionParams) -> Decision:
    """Scale up every bottleneck; if there is none, scale down every operator without lag.

    >>> a = OperatorSnapshot(name="a", parallelism=4, backpressured=0.2, queue_growth=0)
    >>> b = OperatorSnapshot(name="b", upstream=("a",), parallelism=8, backpressured=0)
    >>> now = Snapshot(at=0, operators={"a": a, "b": b})
    >>> dhalion([now], [], DhalionParams()).changes
    {'b': 10}
    """
    snapshot = history[-1]
    slow = find_bottlenecks(snapshot, backpressure=params.backpressure, lag_rate=params.lag_rate)
    return each_operator("dhalion", snapshot, lambda op: _target(op, snapshot, slow, params))


def _target(
    op: OperatorSnapshot, snapshot: Snapshot, slow: Bottlenecks, params: DhalionParams
) -> Target:
    k = op.parallelism
    if op.name in slow.suspected:
        return keep(k, Reason.METRICS_MISSING)
    if op.name in slow.confirmed:
        return _grown_source(op) if op.is_source else _grown(op, snapshot)
    if slow.confirmed or slow.suspected:
        return keep(k, Reason.BOTTLENECK_ELSEWHERE)
    measured, bound = (
        (op.queue, params.queue_lag) if op.is_source else (op.input_buffer, params.buffer_lag)
    )
    if measured is None:
        return keep(k, Reason.METRICS_MISSING)
    has_lag = measured >= bound if op.is_source else measured > bound
    if has_lag:
        return keep(k, Reason.HAS_LAG, "{lag} against {bound}", lag=measured, bound=bound)
    wanted = max(1, floor(k * params.scale_down))
    lag = f"queue {measured:g}" if op.is_source else f"input buffer {measured:g}"
    numbers = {"lag": lag, "k": k, "scale_down": params.scale_down, "wanted": wanted}
    return Target(k, wanted, Reason.AT_MINIMUM if k == 1 else Reason.HEALTHY, SHRINK, numbers)


def _grown_source(op: OperatorSnapshot) -> Target:
    k = op.parallelism
    if not op.input_rate or op.queue_growth is None:
        return keep(k, Reason.METRICS_MISSING)
    factor = min(10.0, max(1.0, 1 + op.queue_growth / op.input_rate))
    wanted = ceil(k * factor)
    numbers = {"growth": op.queue_growth, "input": op.input_rate}
    numbers |= {"factor": factor, "k": k, "wanted": wanted}
    return Target(k, wanted, Reason.BOTTLENECK, SOURCE, numbers)


def _grown(op: OperatorSnapshot, snapshot: Snapshot) -> Target:
    k = op.parallelism
    shares = [snapshot.operators[up].backpressured or 0.0 for up in op.upstream]
    b = min(0.9, max(shares))
    wanted = ceil(k / (1 - b))
    numbers = {"b": b, "factor": 1 / (1 - b), "k": k, "wanted": wanted}
    return Target(k, wanted, Reason.BOTTLENECK, INNER, numbers)


POLICY = Policy(
    name="dhalion",
    summary="grow the bottlenecks that back-pressure and lag point to, else shrink",
    paper="Dhalion, VLDB 2017, as in the evaluation thesis 4.2",
    decide=dhalion,
    params=DhalionParams,
    measures=("backpressured", "queue", "queue_growth", "input_rate", "input_buffer"),
    style=PolicyStyle("#D55E00", "solid", "s"),
)
