"""SLO: the cheapest replicas that are expected to keep a latency objective.

The policy is this project's own. What it takes from others: sizing all operators at once from true
rates (DS2, OSDI 2018), arrival and service curves (network calculus), cases from past errors
(conformal prediction), error budgets of reliability engineering: a pause makes records miss the
objective, so changes that pause are only as frequent as the share of records that may miss it
allows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.params import Params, param
from penstock.core.policies.slo.capacity import Capacity, measure_capacity
from penstock.core.policies.slo.change_cost import ChangeCost, hold_s, measure_change_cost
from penstock.core.policies.slo.curves import ServiceCurve, Values, needed_rates
from penstock.core.policies.slo.demand import Demand, predict_demands
from penstock.core.policies.slo.latency_model import measure_floors, share_objective
from penstock.core.policy import Applied, History, Policy, PolicyStyle, RunFacts, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot

SIZE = (
    "{mean} records/s are expected within {horizon} s, {backlog} wait longer than usual, and a "
    "record may wait {wait} s; with bursts like those of the past, {needed} records/s are enough "
    "for {percent} % of the records, and one replica takes {capacity}; "
    "wanted = ceil({needed} / {capacity}) = {wanted}"
)
SKEW = "scaling will not help: more than {useful} replicas wait for the one with the fullest slice"
EXHAUSTED = (
    "scaling will not help: saturated replicas took no more after the last increase than {useful} "
    "did before it, so cores, a sink or another resource is exhausted"
)
#: Share of all replicas that a decrease must save at least.
MIN_SAVING = 0.15


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


def slo(history: History, applied: Applied, params: SloParams) -> Decision:
    """Return the cheapest replicas that are expected to keep the objective.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="o", parallelism=1, input_rate=90, busy=0.9, queue=10)
    >>> history = [
    ...     Snapshot(at=15 * i, offered={"o": 200}, operators={"o": op}) for i in range(20)
    ... ]
    >>> slo(history, [], SloParams()).changes  # and what a first change may delay
    {'o': 4}
    """
    known = within(history, params.lookback_s)
    snapshot = known[-1]
    cost = measure_change_cost(known, applied)
    floors = measure_floors(known)
    waits = share_objective(snapshot, params.objective_s, floors)
    lasting_s = hold_s(cost, params.objective_s, params.share)
    demands = predict_demands(known, cost, floors, lasting_s)
    targets, sizings = {}, {}
    for name, op in snapshot.operators.items():
        capacity = measure_capacity(name, known)
        demand = demands.get(name)
        if capacity is None or demand is None or op.queue is None:
            targets[name] = keep(op.parallelism, Reason.METRICS_MISSING)
            continue
        sizings[name] = _Sizing(op, capacity, demand, waits[name], cost, params)
        targets[name] = sizings[name].target()
    chosen = delay_small_savings(targets)
    if cost.pause_s and any(target.wanted != target.current for target in chosen.values()):
        # a change may pause all operators: each needs what carries the pause
        targets |= {name: sizing.target(pauses=True) for name, sizing in sizings.items()}
        chosen = delay_small_savings(targets)
    return Decision(snapshot.at, "slo", FrozenDict(chosen))


def delay_small_savings(targets: Mapping[str, Target]) -> Mapping[str, Target]:
    """Return the targets, without decreases that together save hardly anything.

    Operators that shrink wait for each other, and for one that must grow: it is one change.
    """
    if any(target.wanted > target.current for target in targets.values()):
        return targets
    total = sum(target.current for target in targets.values())
    saved = sum(target.current - target.wanted for target in targets.values())
    if not 0 < saved < MIN_SAVING * total:
        return targets
    return {
        name: keep(target.current, Reason.SCALE_DOWN_DELAYED, SIZE, **target.numbers)
        if target.wanted < target.current
        else target
        for name, target in targets.items()
    }


@dataclass(frozen=True, slots=True)
class _Sizing:
    """The choice for one operator."""

    op: OperatorSnapshot
    capacity: Capacity
    demand: Demand
    wait_s: float
    cost: ChangeCost
    params: SloParams

    def target(self, *, pauses: bool = False) -> Target:
        """Grow if the present replicas do not suffice; shrink if fewer suffice for long enough."""
        k, limit = self.op.parallelism, self.op.useful_parallelism
        as_it_runs = self._fill_in(pause_s=self.cost.pause_s if pauses else 0.0)
        changed = self._fill_in(pause_s=self.cost.pause_s, lasts=True)
        if limit is not None and changed["wanted"] > max(k, limit):
            skewed = {**changed, "useful": limit}
            if k >= limit:
                return keep(k, Reason.INEFFECTIVE, f"{SIZE}; {SKEW}", **skewed)
            return Target(k, limit, Reason.RATE_ABOVE_CAPACITY, f"{SIZE}; {SKEW}", skewed)
        if as_it_runs["wanted"] > k:
            useful = self.capacity.useful
            if useful is not None and k >= useful:
                exhausted = {**changed, "useful": useful}
                return keep(k, Reason.INEFFECTIVE, f"{SIZE}; {EXHAUSTED}", **exhausted)
            larger = max(as_it_runs, changed, key=lambda numbers: int(numbers["wanted"]))
            return Target(k, larger["wanted"], Reason.RATE_ABOVE_CAPACITY, SIZE, larger)
        if changed["wanted"] < k:
            return Target(k, changed["wanted"], Reason.RATE_BELOW_CAPACITY, SIZE, changed)
        if as_it_runs["wanted"] < k:
            return keep(k, Reason.SCALE_DOWN_DELAYED, SIZE, **changed)
        return Target(k, k, Reason.FITS, SIZE, as_it_runs)

    def _fill_in(self, *, pause_s: float, lasts: bool = False) -> dict[str, Any]:
        """Return the numbers of the formula for a pause before the rates are carried."""
        cost, demand, per_replica = self.cost, self.demand, self.capacity.per_replica
        # without a change, records may be late for as long as a change would make them late
        settled_s = cost.effective_s + cost.pause_s
        if cost.pause_s >= self.wait_s or demand.backlog:
            settled_s += cost.drain_s(self.params.objective_s)
        curve = ServiceCurve(
            start_s=cost.effective_s,
            pause_s=pause_s,
            end_s=max(cost.horizon_s, settled_s),
            next_pause_s=cost.pause_s,
            settled_s=settled_s,
            wait_s=self.wait_s,
            step_s=cost.interval_s,
        )
        present = per_replica * self.op.parallelism
        rates = needed_rates(demand.scenarios, curve, demand.backlog, present)
        upper = find_rate(rates, self.params.share)
        if lasts:
            upper = max(upper, float(np.max(needed_rates(demand.lasting, curve))))
        needed = max(demand.mean, upper)
        return {
            "mean": demand.mean,
            "percent": 100 * self.params.share,
            "horizon": curve.end_s,
            "backlog": demand.backlog,
            "wait": self.wait_s,
            "needed": needed,
            "capacity": per_replica,
            "wanted": max(1, ceil(needed / per_replica)),
        }


def find_rate(needed: Values, share: float) -> float:
    """Return the capacity with which at least that share of the records of all cases is in time.

    With capacity c, a case that takes r > c serves about c / r of its records in time.

    >>> round(find_rate(np.array([100.0] * 96 + [200.0] * 4), 0.99), 6)
    150.0
    """
    ordered = np.sort(needed)[::-1]
    worst = np.arange(1, len(ordered) + 1) - (1 - share) * len(ordered)
    times = np.cumsum(1 / np.maximum(ordered, 1e-12))
    return float(max(np.max(worst / times), 0.0))


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
