"""Builds the stations of a simulated pipeline and connects them by topics."""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.engines.simulator.batches.binned_topic import BinnedTopic
from penstock.engines.simulator.batches.model import Batches, fit_costs
from penstock.engines.simulator.batches.station import BatchStation, Output
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.records.service import ServiceTime
from penstock.errors import InputError


def build_stations(
    pipeline: SimulatedPipeline,
    rules: Batches,
    source_topics: Mapping[str, BinnedTopic],
    seeds: Sequence[np.random.SeedSequence],
) -> dict[str, BatchStation]:
    """Connect operators by topics: one output each, or one per reader if their shares differ."""
    outputs = {op.name: _outputs(op, pipeline) for op in pipeline.operators}
    stations = {}
    for op, seed in zip(pipeline.operators, seeds, strict=True):
        costs = op.costs or fit_costs(op.capacity_rate, rules)
        reads = dict(outputs[up][op.name] for up in op.upstream)
        topics = {name: output.topic for name, output in reads.items()}
        if not topics:
            topics = {op.topic: source_topics[op.topic]}
        service = ServiceTime(distribution=op.distribution, mean_s=0.0, scv=op.scv)
        station = BatchStation(
            name=op.name,
            costs=costs,
            scv=service.spread,
            shares=_shares(op, costs.slices),
            topics=topics,
            outputs=tuple(dict(outputs[op.name].values()).values()),
            draw=np.random.default_rng(seed),
            replicas=op.replicas,
            queue_limit=op.queue_limit,
        )
        station.begin()
        stations[op.name] = station
    return stations


def _shares(op: SimulatedOperator, slices: int) -> tuple[float, ...]:
    """Return the share of each slice in the rows; equal shares by default."""
    if not op.slice_shares:
        return (1 / slices,) * slices if slices else ()
    if len(op.slice_shares) != slices:
        problem = f"must be {slices}, one for each slice, got {len(op.slice_shares)}"
        raise InputError(f"{op.name}.slice_shares", problem)
    total = sum(op.slice_shares)
    return tuple(share / total for share in op.slice_shares)


def _outputs(op: SimulatedOperator, pipeline: SimulatedPipeline) -> dict[str, tuple[str, Output]]:
    """Return the output topic for each downstream operator."""
    shares = {name: op.sent.get(name, 1.0) for name in pipeline.topology.downstream[op.name]}
    if len(set(shares.values())) > 1:
        names = {name: f"{op.name} to {name}" for name in shares}
    else:
        names = dict.fromkeys(shares, f"out of {op.name}")
    outputs = {
        topic: Output(name=topic, topic=BinnedTopic(), share=shares[name])
        for name, topic in names.items()
    }
    return {name: (topic, outputs[topic]) for name, topic in names.items()}
