"""A pipeline with Spark's own state, rows for it, and what must come of them by DuckDB."""

from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MOST = 4


def clicks_and_views() -> Pipeline:
    """One operator that groups, one that joins two topics."""
    pipeline = Pipeline("native")
    pipeline.topic("clicks", "id long, user long, at timestamp", external=True)
    pipeline.topic("views", "id long, seen timestamp", external=True)

    @pipeline.native("clicks", "minutes", max_replicas=MOST)
    def minutes(df: DataFrame) -> DataFrame:
        windows = df.withWatermark("at", "1 second").groupBy(F.window("at", "60 seconds"), "user")
        counted = windows.agg(F.count("*").alias("n"), F.sum("id").alias("total"))
        return counted.select(F.col("window.start").alias("start"), "user", "n", "total")

    @pipeline.native(["clicks", "views"], "pairs", replicas=2, max_replicas=MOST)
    def pairs(clicks: DataFrame, views: DataFrame) -> DataFrame:
        left = clicks.withWatermark("at", "1 second")
        right = views.withWatermark("seen", "1 second").withColumnRenamed("id", "other")
        near = F.expr("id = other AND seen BETWEEN at AND at + INTERVAL 5 seconds")
        return left.join(right.drop("_event"), near).select("id", "user", "_event")

    return pipeline


def click_rows(first: int, end: int) -> pa.Table:
    """Clicks in the order of time, two a second."""
    ids = range(first, end)
    at = [BEGIN + timedelta(seconds=0.5 * i) for i in ids]
    return pa.table({"id": ids, "user": [i * i % 17 for i in ids], "at": at})


def give(layout: RunLayout, pipeline: Pipeline, first: int, end: int) -> None:
    """Let some more clicks come, and a view two seconds after each."""
    seen = [BEGIN + timedelta(seconds=0.5 * i + 2) for i in range(first, end)]
    views = pa.table({"id": range(first, end), "seen": seen})
    for name, rows in {"clicks": click_rows(first, end), "views": views}.items():
        schema = pipeline.topics[name].schema
        with TopicWriter(Topic.create(layout.topic(name), schema), "test") as writer:
            writer.append(rows.cast(schema))


def wrong(layout: RunLayout, count: int, before: int = 1) -> list[str]:
    """Compare what came of so many clicks with the truth; the last windows may be open.

    Those are closed that ended before the watermark of the first `before` clicks, if the rest
    came in later batches.
    """
    problems = []
    watermark = BEGIN + timedelta(seconds=0.5 * (before - 1) - 1)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("clicks", click_rows(0, count))
        database.register("watermark", pa.table({"closed": [watermark]}))
        for name in ("minutes", "pairs"):
            topic = Topic.open(layout.topic(name))
            batches = topic.read(topic.first, topic.end)
            database.register(name, pa.Table.from_batches(batches, topic.schema))
        minutes = """
            WITH truth AS (
                SELECT time_bucket(INTERVAL 60 seconds, "at") AS start, "user",
                       count(*) AS n, sum(id)::BIGINT AS total
                FROM clicks GROUP BY ALL)
            FROM truth WHERE start <= (SELECT max(start) FROM minutes)
                          OR start + INTERVAL 60 seconds <= (SELECT closed FROM watermark)"""
        checks = {
            "minutes": (minutes, 'SELECT start, "user", n, total FROM minutes'),
            "pairs": ('SELECT id, "user" FROM clicks', 'SELECT id, "user" FROM pairs'),
        }
        for name, (truth, found) in checks.items():
            lost = database.execute(f"({truth}) EXCEPT ALL ({found})").fetchall()
            doubled = database.execute(f"({found}) EXCEPT ALL ({truth})").fetchall()
            problems += [f"{name}: lost {row}" for row in lost[:5]]
            problems += [f"{name}: too many {row}" for row in doubled[:5]]
    return problems
