"""Queries of the Nexmark benchmark as pipelines, in the thesis' variant and in the reference's.

Each module has `build`, which declares the pipeline: sources that read events, the query's own
operators, and a sink that fills the topic `out`. In the thesis' variant operators are named as in
the simulated pipeline, so that both can be compared. Beside it stands `TRUTHS`, what must come out.
"""

from collections.abc import Mapping
from types import ModuleType

from penstock.pipelines.nexmark.queries import q1, q2, q3, q5, q8, q11

QUERIES: Mapping[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module for module in (q1, q2, q3, q5, q8, q11)
}
