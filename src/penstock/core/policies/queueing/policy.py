"""Queueing theory: as few replicas as keep the expected response time within an objective.

Russo Russo, Schiazza, Cardellini, "Elastic Pulsar Functions for Distributed Stream
Processing", ICPE 2021 Companion, section 4.2: every operator is a GI/G/k station.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params, param
from penstock.core.policies.queueing.longest_path import (
    heaviest_of_a_long_path,
    lightest_of_a_short_path,
)
from penstock.core.policies.queueing.waiting_time import response_time_s
from penstock.core.policy import Applied, History, Policy, PolicyStyle, RunFacts, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot

STATION = "T({k} replicas) = {response} s at {arrivals} records/s, {service} s a record"
FUNCTION = STATION + "; smallest k with T <= {r_max} s is {wanted}"
PATH = STATION + "; a path through here {verdict}"
#: Share of the objective that the mean response may take: the objective is about single
#: records, and most of them should meet it.
MEAN_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueingParams(Params):
    """Parameters of the queueing policy."""

    scope: str = param("path", "what the objective is about", choices=("path", "function"))
    r_max: float = param(
        1.0, "longest mean response time", unit="s", low=0, above=True, is_scaled=False
    )
    alpha: float = param(0.5, "path: scale in below this share of r_max", low=0, above=True, high=1)
    default_scv: float = param(1.0, "scv where none was measured; 1 is exponential", low=0)


def queueing(history: History, _applied: Applied, params: QueueingParams) -> Decision:
    """Size each operator alone, or step along the paths that miss the objective.

    >>> op = OperatorSnapshot(name="map", parallelism=1, service_time_s=0.5)
    >>> now = Snapshot(at=0, offered={"map": 6.0}, operators={"map": op})
    >>> queueing([now], [], QueueingParams(scope="function", r_max=0.6)).changes
    {'map': 5}
    """
    snapshot = history[-1]
    if params.scope == "function":
        return each_operator("queueing", snapshot, lambda op: _sized(op, snapshot, params))
    return _step_along_paths(snapshot, params)


def _response(
    op: OperatorSnapshot, snapshot: Snapshot, replicas: int, params: QueueingParams
) -> float | None:
    arrivals = snapshot.arrival_rate(op.name)
    if arrivals is None or not op.service_time_s:
        return None
    ca2 = params.default_scv if op.arrival_scv is None else op.arrival_scv
    cs2 = params.default_scv if op.service_scv is None else op.service_scv
    return response_time_s(arrivals, op.service_time_s, replicas, ca2, cs2)


def _sized(op: OperatorSnapshot, snapshot: Snapshot, params: QueueingParams) -> Target:
    """Function scope: the smallest k from 1 up that meets the objective, or the maximum."""
    k, arrivals = op.parallelism, snapshot.arrival_rate(op.name)
    if arrivals is None or not op.service_time_s:
        return keep(k, Reason.METRICS_MISSING)
    maximum = op.max_parallelism or math.inf
    if op.service_time_s > params.r_max:  # no T can be shorter than the service time
        wanted = k if maximum == math.inf else int(maximum)
    else:
        wanted = int(min(_smallest(op, snapshot, params), maximum))
    numbers = _numbers(op, snapshot, wanted, params) | {"r_max": params.r_max, "wanted": wanted}
    if numbers["response"] > params.r_max:
        if maximum == math.inf:
            return keep(k, Reason.OBJECTIVE_UNREACHABLE, STATION, **numbers)
        reason = Reason.AT_MAXIMUM if wanted == k else Reason.RESPONSE_ABOVE_OBJECTIVE
        return Target(k, wanted, reason, FUNCTION, numbers)
    reason = Reason.RESPONSE_ABOVE_OBJECTIVE if wanted > k else Reason.RESPONSE_BELOW_OBJECTIVE
    return Target(k, wanted, Reason.FITS if wanted == k else reason, FUNCTION, numbers)


def _smallest(op: OperatorSnapshot, snapshot: Snapshot, params: QueueingParams) -> int:
    # below the offered load every T is infinite, so the search may begin there
    offered = (snapshot.arrival_rate(op.name) or 0.0) * (op.service_time_s or 0.0)
    k, maximum = max(1, math.floor(offered)), op.max_parallelism or math.inf
    while k < maximum and (_response(op, snapshot, k, params) or 0.0) > params.r_max:
        k += 1
    return k


def _step_along_paths(snapshot: Snapshot, params: QueueingParams) -> Decision:
    """Path scope: one step where a path is too slow, or has more than it needs."""
    ops, graph = snapshot.operators, snapshot.topology
    times = {name: _response(op, snapshot, op.parallelism, params) for name, op in ops.items()}
    # an unknown time makes a path neither too slow nor fast enough to shrink
    at_least = {name: t or 0.0 for name, t in times.items()}
    at_most = {name: math.inf if t is None else t for name, t in times.items()}
    out = heaviest_of_a_long_path(graph, at_least, above=params.r_max)
    spare = {name for name, op in ops.items() if op.parallelism > 1}
    into = lightest_of_a_short_path(graph, at_most, spare, below=params.alpha * params.r_max)
    targets = {}
    for name, op in ops.items():
        k, numbers = op.parallelism, _numbers(op, snapshot, op.parallelism, params)
        if times[name] is None:
            targets[name] = keep(k, Reason.METRICS_MISSING)
        elif name in out and op.max_parallelism is not None and k >= op.max_parallelism:
            numbers["verdict"] = f"takes longer than {params.r_max:g} s, but no replica is left"
            targets[name] = keep(k, Reason.AT_MAXIMUM, PATH, **numbers)
        elif name in out:
            numbers["verdict"] = f"takes longer than {params.r_max:g} s, and this is its slowest"
            targets[name] = Target(k, k + 1, Reason.RESPONSE_ABOVE_OBJECTIVE, PATH, numbers)
        elif name in into:
            below = params.alpha * params.r_max
            numbers["verdict"] = (
                f"takes less than {below:g} s, and this is the quickest with spares"
            )
            targets[name] = Target(k, k - 1, Reason.RESPONSE_BELOW_OBJECTIVE, PATH, numbers)
        else:
            targets[name] = keep(k, Reason.RESPONSE_IN_RANGE, STATION, **numbers)
    return Decision(snapshot.at, "queueing", FrozenDict(targets))


def _numbers(
    op: OperatorSnapshot, snapshot: Snapshot, replicas: int, params: QueueingParams
) -> dict[str, Any]:
    return {
        "k": replicas,
        "response": _response(op, snapshot, replicas, params),
        "arrivals": snapshot.arrival_rate(op.name),
        "service": op.service_time_s,
    }


def params_for(facts: RunFacts) -> Mapping[str, Any]:
    """Derive the longest mean response from the objective of the run.

    >>> params_for(RunFacts(objective_s=4.0))
    {'r_max': 2.0}
    """
    return {"r_max": MEAN_SHARE * facts.objective_s} if facts.objective_s else {}


POLICY = Policy(
    name="queueing",
    summary="fewest replicas whose expected response time meets an objective (GI/G/k)",
    paper="Elastic Pulsar Functions, 2021, 4.2",
    decide=queueing,
    params=QueueingParams,
    params_for=params_for,
    measures=("output_rate", "service_time_s", "service_scv", "arrival_scv"),
    style=PolicyStyle("#E69F00", "solid", "h"),
)
