"""Static-peak: the smallest fixed parallelism that carries the highest rate.

The over-provisioned configuration (r_over) of the predictive paper, section V-A: the cost
without an autoscaler.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.params import NOTHING, Params, PerOperator, check_names, look_up, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, RunFacts, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot, expected_arrival_rates

SIZE = "wanted = {wanted}, enough for {peak} records/s at the sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPeakParams(Params):
    """Parameters of the static-peak policy."""

    peak_rate: PerOperator = param(
        NOTHING, "highest rate offered to each source", unit="records/s", low=0, above=True
    )
    parallelism: PerOperator = param(
        NOTHING, "replicas, sized once from the first complete measures and kept", low=1
    )


def static_peak(history: History, _applied: Applied, params: StaticPeakParams) -> Decision:
    """Return the parallelism that carries the peak; once computed, it never changes.

    >>> op = OperatorSnapshot(name="map", parallelism=1, service_time_s=0.1)
    >>> now = Snapshot(at=0, offered={"map": 10}, operators={"map": op})
    >>> static_peak([now], [], StaticPeakParams(peak_rate={"*": 75})).changes
    {'map': 8}
    """
    snapshot = history[-1]
    check_names(params.peak_rate, snapshot.operators, "peak_rate")
    sized = size_for_peak(params, snapshot).parallelism
    peak = sum(look_up(params.peak_rate, name) or 0.0 for name in snapshot.topology.sources)

    def answer(op: OperatorSnapshot) -> Target:
        if (wanted := look_up(sized, op.name)) is None:
            return keep(op.parallelism, Reason.METRICS_MISSING)
        numbers = {"wanted": int(wanted), "peak": peak}
        return Target(op.parallelism, int(wanted), Reason.SIZED_FOR_PEAK, SIZE, numbers)

    return each_operator("static-peak", snapshot, answer)


def size_for_peak(params: StaticPeakParams, snapshot: Snapshot) -> StaticPeakParams:
    """Return parameters with every parallelism that can be computed for the first time."""
    peaks = {
        name: peak
        for name in snapshot.topology.sources
        if (peak := look_up(params.peak_rate, name)) is not None
    }
    at_peak = Snapshot(at=snapshot.at, offered=peaks, operators=snapshot.operators)
    fresh = {
        name: float(max(1, ceil(rate / capacity)))
        for name, rate in expected_arrival_rates(at_peak).items()
        if rate is not None
        and (capacity := snapshot.operators[name].replica_capacity)
        and look_up(params.parallelism, name) is None
    }
    return params.but(parallelism=FrozenDict({**params.parallelism, **fresh})) if fresh else params


def params_for(facts: RunFacts) -> Mapping[str, Any]:
    """Take the peak from the workload, and the replicas from an engine that knows capacities.

    >>> params_for(RunFacts(peak_rates={"map": 75.0}))
    {'peak_rate': {'map': 75.0}}
    """
    known = {"peak_rate": facts.peak_rates, "parallelism": facts.peak_replicas}
    return {name: values for name, values in known.items() if values}


POLICY = Policy(
    name="static-peak",
    summary="the smallest fixed parallelism that carries the peak",
    paper="r_over of A predictive approach for dynamic replication of operators, 2022",
    decide=static_peak,
    params=StaticPeakParams,
    params_for=params_for,
    measures=("service_time_s", "input_rate", "output_rate", "busy"),
    reacts=False,
    measure_once=size_for_peak,
    style=PolicyStyle("#6E6E6E", "dashed", "X"),
)
