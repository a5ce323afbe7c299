"""A query for a run: events happen as its workload lets them come, and rows take their time."""

from dataclasses import replace

from penstock.nexmark.event_order import KINDS, ROUND
from penstock.nexmark.queries import QUERIES, first_variant
from penstock.nexmark.queries.common import Variant, usual
from penstock.nexmark.queries.simulated_work import bounded, lasting
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.times import Following
from penstock.pipelines.pipeline import Pipeline
from penstock.workloads.workload import Workload


def declare(
    query: str, load: Workload | None, variant: Variant | None = None, service_s: float = 0.0
) -> Pipeline:
    """Declare a query as a run needs it; without a workload events come at the usual rate."""
    chosen = variant or first_variant(query)
    setting = paced(query, chosen, load) if load is not None else None
    pipeline = lasting(QUERIES[query].build(chosen, setting), service_s)
    return bounded(pipeline, load.peak_rate) if load is not None else pipeline


def paced(query: str, variant: Variant, load: Workload) -> StreamSettings:
    """Return the variant's setting with times that follow the workload of a run.

    The workload counts the events that the query reads; those that it does not read happen
    between them, and nobody makes them.
    """
    read = sum(KINDS[topic].share for topic in QUERIES[query].build(variant).feeds)
    return replace(usual(variant), clock=Following(load * (ROUND / read)))
