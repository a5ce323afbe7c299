"""Declares a query for a run: its workload, emulated service times and queue limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError
from penstock.nexmark.event_order import KINDS, ROUND
from penstock.nexmark.queries import QUERIES, first_variant
from penstock.nexmark.queries.common import Variant, usual
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.times import WorkloadClock
from penstock.pipelines.cpu_clock import emulate_work, minimum_duration
from penstock.pipelines.pipeline import Pipeline
from penstock.workloads.workload import Workload


def declare(
    query: str, load: Workload | None, variant: Variant | None = None, service_s: float = 0.0
) -> Pipeline:
    """Declare a query for a run; without a workload, events have the default rate."""
    chosen = variant or first_variant(query)
    setting = settings_for(query, chosen, load) if load is not None else None
    pipeline = with_service_time(QUERIES[query].build(chosen, setting), service_s)
    return with_queue_limits(pipeline, load.peak_rate) if load is not None else pipeline


def settings_for(query: str, variant: Variant, load: Workload) -> StreamSettings:
    """Return the variant's settings with event times that follow the workload of a run.

    The workload counts the events that the query reads. The other events have times between them
    and are never generated.
    """
    read = sum(KINDS[topic].share for topic in QUERIES[query].build(variant).feeds)
    return replace(usual(variant), clock=WorkloadClock(load * (ROUND / read)))


#: Service time of a row at each operator, relative to the query's main operator. The ratios are
#: those of the simulated pipelines, which follow the thesis.
WORK: Mapping[str, Mapping[str, float]] = FrozenDict(
    q1={"source": 1.6, "mapper": 1.0, "sink": 0.6},
    q2={"source": 2.0, "filter": 1.0, "sink": 0.8},
    q3={"auctions": 0.1, "persons": 0.1, "filter": 0.05, "category": 0.05, "join": 1.0},
    q5={"source": 0.12, "window": 1.0, "sink": 0.12},
    q8={"auctions": 0.2, "persons": 0.2, "join": 1.0, "sink": 0.1},
    q11={"source": 0.28, "window": 1.0, "sink": 0.15},
)


#: Slices of operators with state: fewer than the default, because each call costs real time.
SLICES = 24
#: Capacity of a queue between two operators, in seconds of peak load.
BUFFER_S = 4.0


def with_queue_limits(pipeline: Pipeline, peak_rate: float) -> Pipeline:
    """Limit the queues between operators, as in the engine of the thesis."""
    first = set(pipeline.feeds)
    for name, operator in pipeline.operators.items():
        if not first & set(operator.reads):
            limit = max(1, round(peak_rate * BUFFER_S))
            options = replace(operator.options, queue_limit=limit)
            pipeline.operators[name] = replace(operator, options=options)
    return pipeline


def with_service_time(pipeline: Pipeline, service_s: float) -> Pipeline:
    """Emulate service times: `service_s` per row at the main operator, its share at the others.

    Operators wait instead of computing, so that two cores carry as many replicas as the thesis
    had. The waiting time counts as processor time.
    """
    if not 0 <= service_s < float("inf"):
        raise InputError("service_s", f"must be at least 0 and finite, got {service_s:g}")
    if not service_s:
        return pipeline
    for name, operator in pipeline.operators.items():
        row_s = service_s * WORK.get(pipeline.name, {}).get(name, 0.0)
        if not row_s:  # operators over Spark frames have no entry
            continue
        pipeline.operators[name] = replace(
            operator,
            function=SimulatedWork(operator.function, row_s),
            slicing=operator.slicing and replace(operator.slicing, slices=SLICES),
        )
    return pipeline


@dataclass(frozen=True, slots=True)
class SimulatedWork:
    """Wraps a function: each row takes `row_s`, one after the other."""

    function: Any
    row_s: float

    def __call__(self, given: pa.RecordBatch | Mapping[str, pa.RecordBatch], *more: Any) -> Any:
        """Call the function, and wait until its rows have taken their time."""
        inputs = given.values() if isinstance(given, Mapping) else (given,)
        rows = sum(batch.num_rows for batch in inputs)
        with minimum_duration(self.row_s * rows, wait=emulate_work):
            return self.function(given, *more)
