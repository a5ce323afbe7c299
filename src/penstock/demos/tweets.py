"""Tweets: the application of "A predictive approach for dynamic replication" (V-A, figure 7).

Four operators classify tweets by topic and by author, and store the result.
"""

import pyarrow as pa

from penstock.demos.support.emulated_service import EmulatedService
from penstock.demos.texts import authors, messages, topic_model
from penstock.demos.texts.json_lines import to_json
from penstock.demos.texts.topic_model import NaiveBayes
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.resources import SharedResource


def build(service_s: float = 0.0, scv: float = 0.01) -> Pipeline:
    """Declare the pipeline; a record takes service_s at each operator.

    Every operator waits for the rest of that time, as it would for a server. With 0 nothing waits,
    and a core processes many thousands of tweets a second.
    """
    pipeline = Pipeline("tweets", summary="tweets judged by content and by author")
    declare(pipeline, EmulatedService(service_s=service_s, scv=scv))
    return pipeline


def declare(pipeline: Pipeline, service: EmulatedService) -> None:
    """Add the four operators and their topics to a pipeline."""
    chunk_rows = service.chunk_rows
    pipeline.topic("tweets", "id long, line string")
    pipeline.topic("parsed", "id long, author string, text string")
    pipeline.topic("contents", "id long, author string, content string, sure double")
    pipeline.topic("judged", "id long, author string, standing string, content string, sure double")
    pipeline.topic("stored", "id long, document string")

    pipeline.produces("tweets", arrivals="poisson")(messages.tweets)

    @pipeline.batches(reads="tweets", writes="parsed", chunk_rows=chunk_rows)
    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Parse the JSON of each tweet; links and addressees are removed from its text."""
        with service.emulate("parse", batch["id"]):
            return messages.parse(batch)

    @pipeline.batches(
        reads="parsed",
        writes="contents",
        resource=SharedResource(topic_model.train_topic_model),
        chunk_rows=chunk_rows,
    )
    def content(batch: pa.RecordBatch, model: NaiveBayes) -> pa.RecordBatch:
        """Classify the topic of each tweet, with a confidence."""
        with service.emulate("content", batch["id"]):
            about, sure = model.judge(batch["text"])
            return pa.record_batch(
                {"id": batch["id"], "author": batch["author"], "content": about, "sure": sure}
            )

    @pipeline.batches(
        reads="contents", writes="judged", resource=authors.directory, chunk_rows=chunk_rows
    )
    def author(batch: pa.RecordBatch, directory: pa.Table) -> pa.RecordBatch:
        """Look up the author of each tweet: press, office, robot, or person."""
        with service.emulate("author", batch["id"]):
            standing = authors.standing(directory, batch["author"])
            return batch.add_column(2, "standing", standing)

    @pipeline.batches(reads="judged", writes="stored", chunk_rows=chunk_rows)
    def store(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the result as a document under the id of the tweet."""
        with service.emulate("store", batch["id"]):
            fields = {name: batch[name] for name in ("author", "standing", "content", "sure")}
            return pa.record_batch({"id": batch["id"], "document": to_json(fields)})


PIPELINE = build()
