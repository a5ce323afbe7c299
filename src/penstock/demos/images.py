"""Images: the application of "Elastic Pulsar Functions" (section 5.1, figure 3).

Every photo of one topic goes through two functions that resize it. One copy is stored; in the
other a digit is recognised by a model that was trained on other digits.
"""

import numpy as np
import pyarrow as pa

from penstock.demos.pictures import digits
from penstock.demos.pictures import grey_images as grey
from penstock.demos.pictures.photos import SIDE
from penstock.demos.support.emulated_service import CHUNK_ROWS, EmulatedService
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.resources import SharedResource

#: Optional packages without which it cannot run.
NEEDS = ("sklearn",)
#: The largest number of replicas of each function in the paper.
MAX_REPLICAS = 15
#: Pixels along the edge of the stored copy, and of the copy for the recogniser.
THUMBNAIL = 16
CELLS = 8


def build(service_s: float = 0.67, scv: float = 0.1) -> Pipeline:
    """Declare the pipeline; recognition takes service_s on average, with 0 it does not wait.

    The default is the service time of the simulated pipeline of the same name.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    pipeline = Pipeline("images", objective_s=5, summary="photos are made small and recognised")
    pipeline.topic("photos", "id long, taken timestamp, label int, picture binary")
    pipeline.topic("stored", "id long, taken timestamp, width int, height int, picture binary")
    pipeline.topic("small", "id long, label int, picture binary")
    pipeline.topic("labels", "id long, label int, guess int, confidence double")

    @pipeline.produces("photos", arrivals="poisson")
    def photos(first_id: int, due: pa.Array) -> pa.Table:
        """Draw photos of digits, with their true labels."""
        ids = first_id + np.arange(len(due))
        pictures, labels = digits.photos(ids)
        return pa.table(
            {"id": ids, "taken": due, "label": labels, "picture": grey.to_arrow(pictures)}
        )

    @pipeline.batches(reads="photos", writes="stored", max_replicas=MAX_REPLICAS)
    def thumbnail(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Create the small copy that is stored."""
        pictures = grey.from_arrow(batch["picture"], SIDE)
        small = np.rint(grey.shrink(pictures, SIDE // THUMBNAIL)).astype(np.uint8)
        edge = pa.array(np.full(len(small), THUMBNAIL, dtype=np.int32))
        return pa.record_batch(
            {
                "id": batch["id"],
                "taken": batch["taken"],
                "width": edge,
                "height": edge,
                "picture": grey.to_arrow(small),
            }
        )

    @pipeline.batches(reads="photos", writes="small", max_replicas=MAX_REPLICAS)
    def resize(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Create the input of the recogniser: only the digit, in 8 x 8 cells from 0 to 16."""
        small = digits.cells(grey.from_arrow(batch["picture"], SIDE))
        return pa.record_batch(
            {"id": batch["id"], "label": batch["label"], "picture": grey.to_arrow(small)}
        )

    @pipeline.batches(
        reads="small",
        writes="labels",
        max_replicas=MAX_REPLICAS,
        resource=SharedResource(digits.train_recogniser),
        chunk_rows=CHUNK_ROWS,
    )
    def recognise(batch: pa.RecordBatch, model: digits.Model) -> pa.RecordBatch:
        """Recognise the digit on each picture.

        The real work takes a fraction of a millisecond. Then the operator waits for the rest of
        the service time, as it would for a model server: two cores cannot run fifteen replicas
        that all compute.
        """
        with service.emulate("recognise", batch["id"]):
            guess, confidence = digits.recognise(model, grey.from_arrow(batch["picture"], CELLS))
        return pa.record_batch(
            {
                "id": batch["id"],
                "label": batch["label"],
                "guess": guess,
                "confidence": confidence,
            }
        )

    return pipeline


PIPELINE = build()
