"""Three operators one behind the other, with retention everywhere: nothing may grow."""

import time

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.pipeline import Pipeline

MOST = 6
ROW_S = 0.002


def soak_pipeline() -> Pipeline:
    """Declare it."""
    pipeline = Pipeline("soak")
    pipeline.topic("raw", "id long, text string")
    pipeline.topic("clean", "id long, text string")
    pipeline.topic("sized", "id long, size int")
    pipeline.topic("done", "id long, size int", keep="20 seconds")

    @pipeline.produces("raw", arrivals="deterministic")
    def raw(first_id: int, due: pa.Array) -> pa.Table:
        ids = range(first_id, first_id + len(due))
        return pa.table({"id": ids, "text": [f" record {i} " for i in ids]})

    @pipeline.batches("raw", "clean", max_replicas=MOST)
    def strip(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        time.sleep(batch.num_rows * ROW_S)
        return {"id": batch["id"], "text": pc.utf8_trim_whitespace(batch["text"])}

    @pipeline.batches("clean", "sized", max_replicas=MOST)
    def measure(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        time.sleep(batch.num_rows * ROW_S)
        return {"id": batch["id"], "size": pc.utf8_length(batch["text"])}

    @pipeline.batches("sized", "done", max_replicas=MOST)
    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(batch.num_rows * ROW_S)
        return batch

    return pipeline
