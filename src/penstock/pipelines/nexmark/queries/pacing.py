"""Event times that go with a run: events happen as its workload lets them come."""

from dataclasses import replace

from penstock.pipelines.nexmark.order import KINDS, ROUND
from penstock.pipelines.nexmark.queries import QUERIES
from penstock.pipelines.nexmark.queries.parts import Variant, usual
from penstock.pipelines.nexmark.setting import Setting
from penstock.pipelines.nexmark.times import Following
from penstock.workloads.workload import Workload


def paced(query: str, variant: Variant, load: Workload) -> Setting:
    """Return the variant's setting with times that follow the workload of a run.

    The workload counts the events that the query reads; those that it does not read happen
    between them, and nobody makes them.
    """
    read = sum(KINDS[topic].share for topic in QUERIES[query].build(variant).feeds)
    return replace(usual(variant), clock=Following(load * (ROUND / read)))
