"""Queries of the Nexmark benchmark as pipelines, in the variants of the thesis and the reference.

Each module has `build`, which declares the pipeline: sources that read events, the query's own
operators, and a sink that fills the topic `out`. In the thesis' variant operators are named as in
the simulated pipeline, so that both can be compared. `TRUTHS` has the expected results.

Queries 1, 2, 3, 5, 8 and 11 are the thesis'. The others, in the reference's variant only, are in
Spark's own words: frames row by row (0, 10, 13, 14, 21, 22), or Spark's own state (7, 17, 20).
Rows come out once and for all, so some of the reference's queries are not here:

====== ==========================================================================================
query  why it is left out
====== ==========================================================================================
4      averages over maxima, both without windows: each new bid may change what was told
6      the last ten prices of a seller: a ranking, which Spark has for windows of time only
9      which bid wins is known when its auction expires, a time that is no watermark to Spark
12     windows of the clock on the wall: no two runs, and so no oracle, would be the same
15, 16 distinct bidders and auctions by day: Spark counts distinct values of streams roughly only
18     the last bid of a bidder for an auction: there may always be a later one
19     the ten highest bids of an auction: there may always be a higher one, and it is a ranking
====== ==========================================================================================
"""

from collections.abc import Mapping
from types import ModuleType

from penstock.nexmark.queries import (
    q0,
    q1,
    q2,
    q3,
    q5,
    q7,
    q8,
    q10,
    q11,
    q13,
    q14,
    q17,
    q20,
    q21,
    q22,
)
from penstock.nexmark.queries.common import Variant

QUERIES: Mapping[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (q0, q1, q2, q3, q5, q7, q8, q10, q11, q13, q14, q17, q20, q21, q22)
}


def first_variant(query: str) -> Variant:
    """Return the default variant: the thesis', if there is one."""
    truths: Mapping[Variant, object] = QUERIES[query].TRUTHS
    return next(iter(truths))
