"""PSPS: replicas predicted from expected arrivals and the queue.

Wladdimiro et al., "A predictive approach for dynamic replication of operators in
distributed stream processing systems", SBAC-PAD 2022, section IV, equations 1 to 4.
"""

from dataclasses import dataclass

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.params import (
    NOTHING,
    Params,
    PerOperator,
    check_names,
    is_usable,
    look_up,
    param,
)
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot, expected_arrival_rates

SIZE = (
    "expected = {arrivals} arrivals + {queue} queued; "
    "wanted = ceil({expected} x {et} s / {interval} s) = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PspsParams(Params):
    """Parameters of PSPS."""

    interval_s: float = param(30.0, "length of an interval (td)", unit="s", low=0, above=True)
    service_time_s: PerOperator = param(
        NOTHING,
        "et, measured once at the start and kept",
        unit="s",
        low=0,
        above=True,
        is_scaled=False,
    )


def psps(history: History, _applied: Applied, params: PspsParams) -> Decision:
    """Return the replicas that work off the records of the next interval within it.

    >>> op = OperatorSnapshot(name="o1", parallelism=1, queue=0, service_time_s=0.0166)
    >>> now = Snapshot(at=0, offered={"o1": 100}, operators={"o1": op})
    >>> psps([now], [], PspsParams(interval_s=1)).changes
    {'o1': 2}
    """
    snapshot = history[-1]
    check_names(params.service_time_s, snapshot.operators, "service_time_s")
    # with one source, the paper's lambda_G x theta
    arrivals = expected_arrival_rates(snapshot)
    return each_operator("psps", snapshot, lambda op: _target(op, arrivals[op.name], params))


def _target(op: OperatorSnapshot, arrival_rate: float | None, params: PspsParams) -> Target:
    k = op.parallelism
    et = look_up(params.service_time_s, op.name) or op.service_time_s
    if arrival_rate is None or op.queue is None or not et:
        return keep(k, Reason.METRICS_MISSING)
    arrivals = arrival_rate * params.interval_s
    expected = arrivals + op.queue
    wanted = max(1, ceil(expected * et / params.interval_s))
    numbers = {
        "arrivals": arrivals,
        "queue": op.queue,
        "expected": expected,
        "et": et,
        "interval": params.interval_s,
        "wanted": wanted,
    }
    reason = Reason.RATE_ABOVE_CAPACITY if wanted > k else Reason.RATE_BELOW_CAPACITY
    return Target(k, wanted, Reason.FITS if wanted == k else reason, SIZE, numbers)


def keep_service_times(params: PspsParams, snapshot: Snapshot) -> PspsParams:
    """Return parameters with the service times that are measured for the first time."""
    known = params.service_time_s
    fresh = {
        name: op.service_time_s
        for name, op in snapshot.operators.items()
        if op.service_time_s and is_usable(op.service_time_s) and look_up(known, name) is None
    }
    return params.but(service_time_s=FrozenDict({**known, **fresh})) if fresh else params


POLICY = Policy(
    name="psps",
    summary="replicas predicted from expected arrivals and queue",
    paper="A predictive approach for dynamic replication of operators, 2022",
    decide=psps,
    params=PspsParams,
    measures=("queue", "service_time_s", "input_rate", "output_rate"),
    measure_once=keep_service_times,
    style=PolicyStyle("#332288", "dashed", ">"),
)
