"""Words: the word count in two stages on which the papers of Dhalion and DS2 try their policies.

Sentences are split into words, and words are counted; the second stage remembers. Some words are
far more frequent than others, so slices of the state differ in load.
"""

import pyarrow as pa

from penstock.demos.services.service import EmulatedService
from penstock.demos.services.with_service import served
from penstock.demos.texts import sentences
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts

#: Time for a word as a share of that for a sentence.
WORD = 0.1


def build(service_s: float = 0.4, scv: float = 0.1) -> Pipeline:
    """Declare the pipeline; to split a sentence takes service_s on average, a word a tenth of it.

    Both stages wait for what is left of these times after their real work, as they would for a
    server: the papers slow their stages down, too. With 0 a record takes what it takes.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    pipeline = Pipeline("words", objective_s=5, summary="sentences are split, words are counted")
    pipeline.topic("sentences", "id long, line string")
    pipeline.topic("words", "id long, word string")

    pipeline.produces("sentences", arrivals="poisson")(sentences.sentences)

    @pipeline.batches(reads="sentences", writes="words", chunk_rows=service.chunk_rows)
    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take sentences apart."""
        with service.lasting("split", batch["id"]):
            return sentences.split(batch)

    waiting = served(counts(by="word"), service.but(service_s=service_s * WORD), "count")
    pipeline.sliced(reads="words", writes="counts", name="count")(waiting)
    return pipeline


PIPELINE = build()
