"""SLO: the cheapest replicas that are expected to keep a latency objective.

The policy is this project's own. What it takes from others: sizing all operators at once from true
rates (DS2, OSDI 2018), bounds from past errors (conformal prediction), error budgets of
reliability engineering: a pause makes records miss the objective, so changes that pause are only as
frequent as the share of records that may miss it allows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.params import Params, param
from penstock.core.policies.slo.capacity import Capacity, measure_capacity, measure_edges
from penstock.core.policies.slo.change_cost import ChangeCost, measure_change_cost
from penstock.core.policies.slo.forecast import forecast, predict_level
from penstock.core.policies.slo.latency_model import (
    capacity_for,
    measure_floors,
    missed_load_s,
    share_objective,
)
from penstock.core.policy import Applied, History, Policy, PolicyStyle, RunFacts, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot

SIZE = (
    "{mean} records/s are expected over the next {horizon} s, at most {upper}; {backlog} wait "
    "longer than usual and may add {wait} s; that takes {needed} records/s, and one replica "
    "takes {capacity}; wanted = ceil({needed} / {capacity}) = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SloParams(Params):
    """Parameters of the policy."""

    objective_s: float = param(
        10.0, "latency of most records", unit="s", low=0, above=True, is_scaled=False
    )
    share: float = param(0.99, "share of the records within it", low=0.5, high=0.9999)
    lookback_s: float = param(
        7200.0, "how far back rates are looked at", unit="s", low=0, above=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Records/s that will arrive at one operator."""

    mean: float
    upper: float
    #: The most over the time that a decrease must last.
    lasting: float


def slo(history: History, applied: Applied, params: SloParams) -> Decision:
    """Return the cheapest replicas that are expected to keep the objective.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="o", parallelism=1, input_rate=90, busy=0.9, queue=10)
    >>> history = [
    ...     Snapshot(at=15 * i, offered={"o": 200}, operators={"o": op}) for i in range(20)
    ... ]
    >>> slo(history, [], SloParams()).changes
    {'o': 2}
    """
    known = within(history, params.lookback_s)
    snapshot = known[-1]
    cost = measure_change_cost(known, applied)
    demands = _predict(known, cost, params)
    floors = measure_floors(known)
    waits = share_objective(snapshot, params.objective_s, floors)
    targets = {}
    for name, op in snapshot.operators.items():
        capacity = measure_capacity(name, known)
        demand = demands.get(name)
        if capacity is None or demand is None or op.queue is None:
            targets[name] = keep(op.parallelism, Reason.METRICS_MISSING)
            continue
        backlog = max(0.0, op.queue - floors[name] * demand.mean)
        sizing = _Sizing(op, capacity, demand, backlog, waits[name], cost, params)
        targets[name] = sizing.target()
    return Decision(snapshot.at, "slo", FrozenDict(targets))


@dataclass(frozen=True, slots=True)
class _Sizing:
    """The choice for one operator."""

    op: OperatorSnapshot
    capacity: Capacity
    demand: _Demand
    backlog: float
    wait_s: float
    cost: ChangeCost
    params: SloParams

    def target(self) -> Target:
        """Grow if the present replicas do not suffice; shrink if fewer suffice for long enough."""
        k = self.op.parallelism
        as_it_runs = self._fill_in(self.demand.upper, 0.0)
        changed = self._fill_in(max(self.demand.upper, self.demand.lasting), self.cost.pause_s)
        if as_it_runs["wanted"] > k:
            useful = self.capacity.useful
            if useful is not None and k >= useful:
                return keep(k, Reason.INEFFECTIVE, SIZE, **changed)
            return Target(k, changed["wanted"], Reason.RATE_ABOVE_CAPACITY, SIZE, changed)
        if changed["wanted"] < k:
            return Target(k, changed["wanted"], Reason.RATE_BELOW_CAPACITY, SIZE, changed)
        if as_it_runs["wanted"] < k:
            return keep(k, Reason.SCALE_DOWN_DELAYED, SIZE, **changed)
        return Target(k, k, Reason.FITS, SIZE, as_it_runs)

    def _fill_in(self, upper: float, pause_s: float) -> dict[str, Any]:
        """Return the numbers of the formula for a rate, and for a pause before it is carried."""
        horizon_s = self.cost.interval_s + self.cost.effective_s
        backlog = self.backlog + self.demand.mean * pause_s
        needed = capacity_for(
            mean=self.demand.mean,
            upper=upper,
            backlog=backlog,
            horizon_s=horizon_s,
            drain_s=max(self.params.objective_s, self.cost.interval_s),
            wait_s=self.wait_s,
        )
        return {
            "mean": self.demand.mean,
            "upper": upper,
            "horizon": horizon_s,
            "backlog": backlog,
            "wait": self.wait_s,
            "needed": needed,
            "capacity": self.capacity.per_replica,
            "wanted": max(1, ceil(needed / self.capacity.per_replica)),
        }


def _predict(history: History, cost: ChangeCost, params: SloParams) -> Mapping[str, _Demand]:
    """Forecast every source, and pass the rates on along the edges."""
    snapshot = history[-1]
    horizon_s = cost.interval_s + cost.effective_s + cost.pause_s
    steps = max(1, ceil(horizon_s / cost.interval_s))
    lasting_steps = max(steps, ceil(hold_s(cost, params) / cost.interval_s))
    sources = {}
    for name in snapshot.offered:
        rates = [past.offered[name] for past in history if name in past.offered]
        sources[name] = _look_ahead(rates, steps, lasting_steps, params.share)
    edges = measure_edges(history)
    demands: dict[str, _Demand] = {}
    for name in snapshot.topology.order:
        op = snapshot.operators[name]
        parts = [sources[name]] if name in sources else []
        if op.is_source and not parts:
            continue
        if any(feeder not in demands for feeder in op.upstream):
            continue
        parts += [_pass_on(demands[up], edges[up, name]) for up in op.upstream]
        demands[name] = _Demand(
            mean=sum(part.mean for part in parts),
            upper=sum(part.upper for part in parts),
            lasting=sum(part.lasting for part in parts),
        )
    return demands


def _pass_on(demand: _Demand, passed: float) -> _Demand:
    return _Demand(
        mean=demand.mean * passed, upper=demand.upper * passed, lasting=demand.lasting * passed
    )


def _look_ahead(rates: list[float], steps: int, lasting_steps: int, share: float) -> _Demand:
    """Return the forecast of a source; what lasts is the most of the past and of the forecast."""
    near = forecast(rates, steps, share)
    levels = predict_level(np.asarray(rates, dtype=np.float64))
    highest = float(np.max(levels[-lasting_steps:]))
    if near.period is not None:  # what comes next came one period ago
        ahead = levels[len(levels) - near.period :][:lasting_steps]
        highest = max(highest, float(np.max(ahead)))
    return _Demand(mean=near.mean, upper=near.upper, lasting=max(highest, near.mean))


def hold_s(cost: ChangeCost, params: SloParams) -> float:
    """Return the seconds that a change must be useful for.

    Without a pause, as long as replicas are paid that do not work yet, twice: for the change and
    for the way back. With one, records miss the objective, and only a share of them may.
    """
    drain_s = max(params.objective_s, cost.interval_s)
    missed_s = missed_load_s(cost.pause_s, params.objective_s, drain_s)
    return max(2 * (cost.effective_s + cost.pause_s), missed_s / (1 - params.share))


def params_for(facts: RunFacts) -> Mapping[str, Any]:
    """Return the objective of the run, if it has one.

    >>> params_for(RunFacts(objective_s=4.0))
    {'objective_s': 4.0}
    """
    return {} if facts.objective_s is None else {"objective_s": facts.objective_s}


POLICY = Policy(
    name="slo",
    summary="the cheapest replicas that are expected to keep a latency objective",
    paper="this project: docs/slo.md",
    decide=slo,
    params=SloParams,
    params_for=params_for,
    measures=("input_rate", "output_rate", "busy", "queue"),
    lookback_s=lambda params: float(params.lookback_s),
    style=PolicyStyle("#BB3377", "solid", "8"),
)
