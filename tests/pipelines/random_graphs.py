"""Random pipelines: operators that read what earlier ones write, with random options."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.pipelines.factories import same

from penstock.pipelines.pipeline import Pipeline

COLUMNS = "id long"
#: Options that let an operator run alone, and those that do not matter.
BATCH_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"chunk_rows": 3},
    {"chain": False},
    {"max_replicas": 3},
    {"grouping": "key:id"},
    {"timeout_s": 2.0},
    {"queue_limit": 100},
    {"on_error": "dead-letter"},
)


def stateful(batch: pa.RecordBatch, state: Any) -> pa.RecordBatch:
    """Give back what came, with its times."""
    return batch


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """A pipeline of up to eight operators that passes the check."""
    pipeline = Pipeline("random", chain=draw(st.integers(0, 9)) > 0)
    pipeline.topic("source", COLUMNS, external=True)
    topics = ["source"]
    for number in range(draw(st.integers(1, 8))):
        name, kind = f"op{number}", draw(st.sampled_from(("batch", "batch", "batch", "sliced")))
        # near topics are more likely, so that there are long chains
        near = draw(st.booleans())
        chosen = topics[-1:] if near else draw(st.lists(st.sampled_from(topics), min_size=1))
        reads = list(dict.fromkeys(chosen))
        writes = [f"t{number}", f"extra{number}"][: draw(st.sampled_from((1, 1, 1, 2)))]
        for topic in writes:
            keep = draw(st.sampled_from(("read", "read", "read", "10 minutes")))
            pipeline.topic(topic, COLUMNS, keep)
        if kind == "sliced":
            pipeline.sliced(reads, writes, key="id", state="n long", name=name)(stateful)
        else:
            options = draw(st.sampled_from(BATCH_OPTIONS))
            pipeline.batches(reads, writes, **options)(_named(name))
        topics += writes
    pipeline.check()
    return pipeline


def _named(name: str) -> Any:
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        return same(batch)

    function.__name__ = name
    return function
