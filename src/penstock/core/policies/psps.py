"""PSPS: replicas predicted from expected arrivals and what is still queued.

Wladdimiro et al., "A predictive approach for dynamic replication of operators in
distributed stream processing systems", SBAC-PAD 2022, section IV, equations 1 to 4.
"""

from collections.abc import Mapping
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
from penstock.core.policy import Applied, History, Policy, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot

SIZE = (
    "expected = {arrivals} arrivals + {queue} queued; "
    "wanted = ceil({expected} x {et} s / {interval} s) = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PspsParams(Params):
    """Parameters of PSPS."""

    interval_s: float = param(30.0, "length of an interval (td)", unit="s", low=0, above=True)
    service_time_s: PerOperator = param(
        NOTHING, "et, measured once at the start and kept", unit="s", low=0, above=True
    )


def psps(history: History, _applied: Applied, params: PspsParams) -> Decision:
    """Ask for as many replicas as work off the next interval's records within it.

    >>> op = OperatorSnapshot(name="o1", parallelism=1, queue=0, service_time_s=0.0166)
    >>> now = Snapshot(at=0, offered={"o1": 100}, operators={"o1": op})
    >>> psps([now], [], PspsParams(interval_s=1)).changes
    {'o1': 2}
    """
    snapshot = history[-1]
    check_names(params.service_time_s, snapshot.operators, "service_time_s")
    arrivals = expected_arrival_rates(snapshot)
    return each_operator("psps", snapshot, lambda op: _target(op, arrivals[op.name], params))


def expected_arrival_rates(snapshot: Snapshot) -> Mapping[str, float | None]:
    """Records/s that will arrive at each operator if all upstream keeps up with what is offered.

    With one source this is the paper's lambda_G x theta: a source gets what is offered to
    it; every other operator, from each predecessor, that one's arrivals times the share of
    processed records that it sends here.
    """
    rates: dict[str, float | None] = {}
    for name in snapshot.topology.order:
        op = snapshot.operators[name]
        total = snapshot.offered.get(name, None if op.is_source else 0.0)
        for feeder in op.upstream:
            part = _sent_on(rates[feeder], feeder, name, snapshot)
            total = None if total is None or part is None else total + part
        rates[name] = total
    return rates


def _sent_on(rate: float | None, feeder: str, name: str, snapshot: Snapshot) -> float | None:
    if not rate:
        return rate  # nothing comes in, so nothing is sent on; or unknown
    processed = snapshot.operators[feeder].input_rate
    sent = snapshot.sent_rate(feeder, name)
    return None if not processed or sent is None else rate * sent / processed


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
)
