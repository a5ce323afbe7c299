"""DNS: the application of the predictive paper on name server traffic (V-G2, figure 13).

Four operators parse lookups, measure the names, classify them as ordinary or generated, and store
the result.
"""

import pyarrow as pa

from penstock.demos.support.emulated_service import EmulatedService
from penstock.demos.texts import lookups, name_shape
from penstock.demos.texts.json_lines import to_json
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.resources import SharedResource
from penstock.pipelines.text_columns import choose

#: Optional packages without which it cannot run.
NEEDS = ("sklearn",)
_MEASURED = ", ".join(f"{measure} double" for measure in name_shape.MEASURES)


def build(service_s: float = 0.0, scv: float = 0.01) -> Pipeline:
    """Declare the pipeline; a record takes service_s at each operator.

    Every operator waits for the rest of that time, as it would for a server. With 0 nothing waits,
    and a core processes many thousands of lookups a second.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    chunk_rows = service.chunk_rows
    pipeline = Pipeline("dns", summary="DNS lookups, classified by the shape of the name")
    pipeline.topic("lookups", "id long, line string")
    pipeline.topic("parsed", "id long, client string, name string, type string")
    pipeline.topic("measured", f"id long, client string, name string, {_MEASURED}")
    pipeline.topic("verdicts", "id long, client string, name string, verdict string, sure double")
    pipeline.topic("stored", "id long, document string")

    pipeline.produces("lookups", arrivals="bursty")(lookups.lookups)

    @pipeline.batches(reads="lookups", writes="parsed", chunk_rows=chunk_rows)
    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Parse each line of the log."""
        with service.emulate("parse", batch["id"]):
            return lookups.parse(batch)

    @pipeline.batches(reads="parsed", writes="measured", chunk_rows=chunk_rows)
    def features(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Measure each name: length, labels, entropy."""
        with service.emulate("features", batch["id"]):
            kept = {name: batch[name] for name in ("id", "client", "name")}
            return pa.record_batch(kept | name_shape.measure(batch["name"]))

    @pipeline.batches(
        reads="measured",
        writes="verdicts",
        resource=SharedResource(name_shape.train_classifier),
        chunk_rows=chunk_rows,
    )
    def classify(batch: pa.RecordBatch, tree: name_shape.Tree) -> pa.RecordBatch:
        """Classify each name as ordinary, generated or tunnel, with a confidence."""
        with service.emulate("classify", batch["id"]):
            measures = {name: batch[name].to_numpy() for name in name_shape.MEASURES}
            chances = tree.predict_proba(name_shape.as_matrix(measures))
            return pa.record_batch(
                {
                    "id": batch["id"],
                    "client": batch["client"],
                    "name": batch["name"],
                    "verdict": choose(lookups.KINDS, chances.argmax(axis=1)),
                    "sure": chances.max(axis=1),
                }
            )

    @pipeline.batches(reads="verdicts", writes="stored", chunk_rows=chunk_rows)
    def store(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the result as a document under the id of the lookup."""
        with service.emulate("store", batch["id"]):
            fields = {name: batch[name] for name in ("client", "name", "verdict", "sure")}
            return pa.record_batch({"id": batch["id"], "document": to_json(fields)})

    return pipeline


PIPELINE = build()
