"""Complex tweets: the larger application of the predictive paper (V-G1, figure 12).

Tweets in English are split into news, classified by subject, and opinions, classified by sentiment;
both are stored. The paper's text does not contain the figure, so the graph is that of the simulated
pipeline. An operator writes one topic, so two readers make the split.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.demos.support.emulated_service import EmulatedService
from penstock.demos.texts import messages, topic_model
from penstock.demos.texts import sentiment as feelings
from penstock.demos.texts.json_lines import to_json
from penstock.demos.texts.phrases import LANGUAGES, SMALL_WORDS
from penstock.demos.texts.topic_model import NaiveBayes
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.resources import SharedResource
from penstock.pipelines.text_columns import choose, pc

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Service times as shares of that of the heaviest operator, as in the simulated pipeline.
SHARES = {
    "parse": 0.1,
    "kind": 0.125,
    "news": 0.25,
    "topic": 0.4,
    "opinion": 0.25,
    "sentiment": 1.0,
    "store": 0.125,
}
#: Authors who mention themselves have an opinion.
OPINION_WORDS = r"\b(i|me|my|honestly)\b"


def build(service_s: float = 0.0, scv: float = 0.01) -> Pipeline:
    """Declare the pipeline; a record takes service_s at `sentiment`, and less at the others.

    Batch operators wait for the rest of their service times, as they would for a server. `language`
    is a function over frames and does not wait.
    """
    heaviest = EmulatedService(service_s=service_s, scv=scv)
    service = {name: heaviest.but(service_s=service_s * share) for name, share in SHARES.items()}
    chunk_rows = heaviest.chunk_rows
    pipeline = Pipeline("tweets-complex", summary="news by subject, opinions by feeling")
    pipeline.topic("tweets", "id long, line string")
    pipeline.topic("parsed", "id long, author string, text string")
    pipeline.topic("english", "id long, author string, text string")
    pipeline.topic("kinds", "id long, author string, text string, kind string")
    pipeline.topic("headlines", "id long, author string, text string")
    pipeline.topic("views", "id long, author string, text string")
    pipeline.topic("subjects", "id long, author string, kind string, found string, weight double")
    pipeline.topic("feelings", "id long, author string, kind string, found string, weight double")
    pipeline.topic("stored", "id long, document string")

    pipeline.produces("tweets", arrivals="poisson")(messages.tweets)

    @pipeline.batches(reads="tweets", writes="parsed", chunk_rows=chunk_rows)
    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Parse the JSON of each tweet; links and addressees are removed from its text."""
        with service["parse"].emulate("parse", batch["id"]):
            return messages.parse(batch)

    @pipeline.operator(reads="parsed", writes="english")
    def language(tweets: "DataFrame") -> "DataFrame":
        """Keep tweets with more function words of English than of any other language."""
        from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

        words = fn.split(fn.lower("text"), " ")

        def small_words(of: str) -> "Column":
            listed = fn.array(*(fn.lit(word) for word in SMALL_WORDS[of]))
            return fn.size(fn.array_intersect(words, listed))

        others = (small_words(of) for of in LANGUAGES if of != "en")
        return tweets.where(small_words("en") > fn.greatest(*others))

    @pipeline.batches(reads="english", writes="kinds", chunk_rows=chunk_rows)
    def kind(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Classify tweets as opinions, in which authors mention themselves, or news."""
        with service["kind"].emulate("kind", batch["id"]):
            personal = pc.match_substring_regex(batch["text"], OPINION_WORDS, ignore_case=True)
            kinds = choose(messages.KINDS, pc.cast(personal, pa.int8()))
            return batch.append_column("kind", kinds)

    @pipeline.batches(reads="kinds", writes="headlines", chunk_rows=chunk_rows)
    def news(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep news, without the opening words."""
        kept = batch.filter(pc.field("kind") == "news").drop_columns("kind")
        with service["news"].emulate("news", kept["id"]):
            headline = pc.replace_substring_regex(kept["text"], "^[^:]{1,30}: ", "")
            return kept.set_column(2, "text", headline)

    @pipeline.batches(
        reads="headlines",
        writes="subjects",
        resource=SharedResource(topic_model.train_topic_model),
        chunk_rows=chunk_rows,
    )
    def topic(batch: pa.RecordBatch, model: NaiveBayes) -> pa.RecordBatch:
        """Classify the subject of each news tweet, with a confidence."""
        with service["topic"].emulate("topic", batch["id"]):
            return _result(batch, "news", *model.judge(batch["text"]))

    @pipeline.batches(reads="kinds", writes="views", chunk_rows=chunk_rows)
    def opinion(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep opinions, without hashtags."""
        kept = batch.filter(pc.field("kind") == "opinion").drop_columns("kind")
        with service["opinion"].emulate("opinion", kept["id"]):
            view = pc.replace_substring_regex(kept["text"], r" ?#\w+", "")
            return kept.set_column(2, "text", view)

    @pipeline.batches(reads="views", writes="feelings", chunk_rows=chunk_rows)
    def sentiment(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Classify each opinion as for or against, with a strength."""
        with service["sentiment"].emulate("sentiment", batch["id"]):
            return _result(batch, "opinion", *feelings.judge(batch["text"]))

    @pipeline.batches(reads=("subjects", "feelings"), writes="stored", chunk_rows=chunk_rows)
    def store(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the result as a document under the id of the tweet."""
        with service["store"].emulate("store", batch["id"]):
            fields = {name: batch[name] for name in ("author", "kind", "found", "weight")}
            return pa.record_batch({"id": batch["id"], "document": to_json(fields)})

    return pipeline


def _result(batch: pa.RecordBatch, kind: str, labels: pa.Array, weight: pa.Array) -> pa.RecordBatch:
    kinds = pa.repeat(kind, len(batch))
    return pa.record_batch(
        {
            "id": batch["id"],
            "author": batch["author"],
            "kind": kinds,
            "found": labels,
            "weight": weight,
        }
    )


PIPELINE = build()
