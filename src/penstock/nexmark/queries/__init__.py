"""Queries of the Nexmark benchmark as pipelines, in the variants of the thesis and the reference.

A module of a query has `build`, which declares the pipeline: sources that read events, the query's
operators, and a sink that fills the topic `out`. In the thesis' variant operators are named as in
the simulated pipeline, so that both can be compared. `TRUTHS` has the expected results.

Queries 1, 2, 3, 5, 8 and 11 are the thesis'. The others have the reference's variant only. They are
Spark frames without state (0, 10, 13, 14, 21, 22, in `row_queries`) or with Spark's own state (7,
17, 20). Rows are final once they are emitted, so some of the reference's queries are missing:

====== ==========================================================================================
query  why it is missing
====== ==========================================================================================
4      averages over maxima, both without windows: each new bid may change earlier rows
6      the last ten prices of a seller: a ranking, which Spark has for windows of time only
9      the winning bid is known when its auction expires, which is no watermark for Spark
12     windows of processing time: two runs differ, so there is no expected result
15, 16 distinct bidders and auctions by day: Spark counts distinct values of streams only roughly
18     the last bid of a bidder for an auction: a later one is always possible
19     the ten highest bids of an auction: a higher one is always possible, and it is a ranking
====== ==========================================================================================
"""

from collections.abc import Mapping

from penstock.errors import InputError, nearest
from penstock.nexmark.queries import q1, q2, q3, q5, q7, q8, q11, q17, q20
from penstock.nexmark.queries.common import NexmarkQuery, Variant, check_variant
from penstock.nexmark.queries.row_queries import ROW_QUERIES

_MODULES = {
    module.__name__.rpartition(".")[2]: module for module in (q1, q2, q3, q5, q7, q8, q11, q17, q20)
}
_QUERIES = ROW_QUERIES | {
    name: NexmarkQuery(name=name, build=module.build, truths=module.TRUTHS)
    for name, module in _MODULES.items()
}
#: All queries by name, in the order of their numbers.
QUERIES: Mapping[str, NexmarkQuery] = {
    name: _QUERIES[name] for name in sorted(_QUERIES, key=lambda name: int(name[1:]))
}


def find_query(name: str, variant: Variant | None = None) -> NexmarkQuery:
    """Return a query; `InputError` if there is no such query, or not in this variant."""
    if name not in QUERIES:
        raise InputError("--query", f"unknown query {name!r}", nearest(name, QUERIES))
    if variant is not None:
        check_variant(name, variant, list(QUERIES[name].truths))
    return QUERIES[name]


def first_variant(query: str) -> Variant:
    """Return the default variant: the thesis', if there is one."""
    return next(iter(QUERIES[query].truths))
