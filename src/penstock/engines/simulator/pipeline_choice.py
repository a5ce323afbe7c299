"""Chooses the simulated pipeline for a load: as measured, or with the rates of the library."""

from dataclasses import replace
from math import inf

from penstock.engines.simulator.batches.model import Batches, Costs
from penstock.engines.simulator.library import load_pipeline, pipelines
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile
from penstock.workloads.workload import Workload

#: A load whose peak exceeds the measured capacity by this factor belongs to another scale.
MAX_OVERLOAD = 10.0
#: Slices of keyed state at another scale: the default of a sliced operator. Measured operators
#: declare fewer, for the few replicas that a small machine carries.
MIN_SLICES = 64


def choose_pipeline(profile: Profile, query: str, load: Workload) -> SimulatedPipeline:
    """Return the pipeline for a query under a load.

    A pipeline that the profile has measured comes first. Measurements use small rates; under a
    load of another scale, the operators get the capacities and the selectivity of the library's
    pipeline and keep their measured overheads and variation.
    """
    measured = profile.pipelines.get(query)
    if measured is None:
        return load_pipeline(query)
    if query not in pipelines() or load.peak_rate <= MAX_OVERLOAD * max_rate(measured, profile):
        return measured
    return scale_pipeline(measured, load_pipeline(query), profile.batches)


def max_rate(pipeline: SimulatedPipeline, profile: Profile) -> float:
    """Return the records/s that the pipeline can process with its maximum of replicas."""
    visits = pipeline.visits()
    limits = {op.name: op.max_replicas or profile.max_replicas or inf for op in pipeline.operators}
    return min(
        limits[op.name] * op.capacity_rate / visits[op.name]
        for op in pipeline.operators
        if visits[op.name]
    )


def scale_pipeline(
    measured: SimulatedPipeline, library: SimulatedPipeline, rules: Batches
) -> SimulatedPipeline:
    """Return the measured pipeline with the capacities and replicas of the library's."""
    by_name = {op.name: op for op in library.operators}
    if set(by_name) != set(measured.names):
        return library
    own_rules = rules.but(**measured.batches)
    operators = (_scale(op, by_name[op.name], own_rules) for op in measured.operators)
    return replace(
        measured, operators=tuple(operators), objective_s=library.objective_s, build_args={}
    )


def _scale(op: SimulatedOperator, library: SimulatedOperator, rules: Batches) -> SimulatedOperator:
    """Return a measured operator with the capacity that the library's has at its replicas.

    The number of keys grows with the rates. So rows spread evenly over slices, and the library
    says how many rows pass on. A queue holds `buffer_s` of the load, if the profile sets it.
    """
    costs = op.costs or Costs(row_s=1 / op.capacity_rate)
    if costs.slices:
        costs = costs.but(slices=max(costs.slices, MIN_SLICES), new_keys=0.0)
    # replicas divide the slices, so the capacity of one depends on their number
    rows = library.capacity_rate / costs.capacity_rate(rules, library.replicas)
    chunk_rows = round(costs.chunk_rows * rows) if costs.chunk_rows else None
    queue_limit = op.queue_limit if rules.buffer_s is None else None
    return replace(
        op,
        capacity_rate=library.capacity_rate,
        replicas=library.replicas,
        min_replicas=library.min_replicas,
        max_replicas=library.max_replicas,
        state_mb=library.state_mb,
        sent=library.sent,
        slice_shares=(),
        queue_limit=round(queue_limit * rows) if queue_limit else None,
        costs=costs.but(row_s=costs.row_s / rows, chunk_rows=chunk_rows),
    )
