"""Operators that wait, so that two cores carry as many replicas as the thesis had.

A row takes as long as it is told to, of which the real work is a part; what is waited for counts
as work of the processor. And queues have ends, as between operators of the thesis' engine.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError
from penstock.pipelines.emulated_cpu import work_for
from penstock.pipelines.pipeline import Pipeline

#: What a row takes at each operator, as a share of what it takes at the query's own: after the
#: speeds of the simulated pipelines, which are those of the thesis.
WORK: Mapping[str, Mapping[str, float]] = FrozenDict(
    q1={"source": 1.6, "mapper": 1.0, "sink": 0.6},
    q2={"source": 2.0, "filter": 1.0, "sink": 0.8},
    q3={"auctions": 0.1, "persons": 0.1, "filter": 0.05, "category": 0.05, "join": 1.0},
    q5={"source": 0.12, "window": 1.0, "sink": 0.12},
    q8={"auctions": 0.2, "persons": 0.2, "join": 1.0, "sink": 0.1},
    q11={"source": 0.28, "window": 1.0, "sink": 0.15},
)


#: Slices of operators with state: fewer than usual, since what their calls take is real.
SLICES = 24
#: Seconds of the load's peak that fit into a queue between two operators.
BUFFER_S = 4.0


def bounded(pipeline: Pipeline, peak_rate: float) -> Pipeline:
    """Hold operators that fill a queue faster than it is emptied, once it is full."""
    first = set(pipeline.feeds)
    for name, operator in pipeline.operators.items():
        if not first & set(operator.reads):
            limit = max(1, round(peak_rate * BUFFER_S))
            options = replace(operator.options, queue_limit=limit)
            pipeline.operators[name] = replace(operator, options=options)
    return pipeline


def lasting(pipeline: Pipeline, service_s: float) -> Pipeline:
    """Let a row take so many seconds at the query's own operator, and its share at the others."""
    if not 0 <= service_s < float("inf"):
        raise InputError("service_s", f"must be at least 0 and finite, got {service_s:g}")
    if not service_s:
        return pipeline
    for name, operator in pipeline.operators.items():
        row_s = service_s * WORK.get(pipeline.name, {}).get(name, 0.0)
        if not row_s:  # also what is in Spark's own words
            continue
        pipeline.operators[name] = replace(
            operator,
            function=SimulatedWork(operator.function, row_s),
            slicing=operator.slicing and replace(operator.slicing, slices=SLICES),
        )
    return pipeline


@dataclass(frozen=True, slots=True)
class SimulatedWork:
    """A function whose rows take their time, one after the other."""

    function: Any
    row_s: float

    def __call__(self, given: pa.RecordBatch | Mapping[str, pa.RecordBatch], *more: Any) -> Any:
        """Do the work, and wait for the rest."""
        began = time.perf_counter()
        result = self.function(given, *more)
        inputs = given.values() if isinstance(given, Mapping) else (given,)
        rest_s = self.row_s * sum(rows.num_rows for rows in inputs) - time.perf_counter() + began
        if rest_s > 0:
            work_for(rest_s)
        return result
