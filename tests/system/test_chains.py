"""Chains on Spark, and cutting and joining them between two starts, against plain Python."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.spark_engines import QUICK, Started, until
from tests.system.test_operators import drained, rows

from penstock.engines.port import Plan
from penstock.engines.spark.chain_leftovers import find_leftovers, process_leftovers
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import RunError
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

pytestmark = pytest.mark.spark


def shapes(*, fails: bool = False) -> Pipeline:
    """in -> first -> a -> second -> b -> count -> c -> last -> out; the number changes in each."""
    pipeline = Pipeline("shapes")
    pipeline.topic("in", "id long", external=True)
    for topic in ("a", "b"):
        pipeline.topic(topic, "id long")
    pipeline.topic("c", "id long, n long")
    pipeline.topic("out", "id long, n long")

    @pipeline.batches("in", "a")
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.not_equal(batch["id"], 7))

    @pipeline.batches("a", "b")
    def second(batch: pa.RecordBatch) -> dict[str, Any]:
        if fails:
            raise ValueError("no more")
        return {"id": pc.multiply(batch["id"], 2)}

    @pipeline.sliced("b", "c", key="id", state="n long", slices=8)
    def count(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
        n = pc.add(pc.fill_null(state.get(batch.select(["id"]))["n"], 0), 1)
        state.put({"id": batch["id"], "n": n})
        return {"id": batch["id"], "n": n, "_event": batch["_event"]}

    @pipeline.batches("c", "out")
    def last(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"id": pc.add(batch["id"], 1), "n": batch["n"]}

    return pipeline


def put(layout: RunLayout, *ids: int) -> None:
    with TopicWriter(Topic.open(layout.topic("in")), "test") as writer:
        writer.append(pa.table({"id": [*ids]}))


def expected(ids: range) -> list[int]:
    return [2 * number + 1 for number in ids if number != 7]


def test_two_chains_as_two_queries(started: Started, layout: RunLayout) -> None:
    """And k changes on the way; the snapshot says what each member does."""
    engine = started.engine(join_chains(shapes()), layout=layout)
    assert {*engine.trackers} == {"first", "count"}
    put(layout, *range(500))
    until(engine, drained(engine))
    engine.apply(Plan(replicas={"first": 3, "count": 2}))
    put(layout, *range(500, 1000))
    until(engine, drained(engine))
    assert sorted(rows(layout, "out")) == expected(range(1000))
    operators = engine.observe().operators
    members = {name: operators[name].extra["members"] for name in operators}
    assert [m["name"] for m in members["first"]] == ["first", "second"]  # type: ignore[attr-defined]
    assert [m["name"] for m in members["count"]] == ["count", "last"]  # type: ignore[attr-defined]


def test_a_chain_is_joined_and_cut_between_starts(
    started: Started, layout: RunLayout, spark: SparkSession
) -> None:
    """What is left between the members comes first, and no row is lost or doubled."""
    alone = started.engine(shapes(), layout=layout)
    put(layout, *range(100))
    until(alone, drained(alone))
    alone.stop()
    # the first operator went on while the second did not
    topic = Topic.open(layout.topic("a"))
    with TopicWriter(topic, "other") as writer:
        writer.append(pa.table({"id": [1000, 1001]}))
    joined = join_chains(shapes())
    assert find_leftovers(joined, layout) == {"second": 2}
    said: list[str] = []
    process_leftovers(spark, joined, layout, QUICK, retry_for_s=60.0, say=said.append)
    assert any("2 rows from before the chain wait for second" in line for line in said)
    assert find_leftovers(joined, layout) == {}
    chained = started.engine(joined, layout=layout)
    put(layout, *range(100, 200))
    until(chained, drained(chained))
    chained.stop()
    cut = started.engine(shapes(), layout=layout)
    put(layout, *range(200, 300))
    until(cut, drained(cut))
    assert sorted(rows(layout, "out")) == [*expected(range(300)), 2001, 2003]


def test_an_operator_that_fails_on_leftovers_ends_the_start(
    started: Started, layout: RunLayout, spark: SparkSession
) -> None:
    alone = started.engine(shapes(), layout=layout)
    put(layout, *range(10))
    until(alone, drained(alone))
    alone.stop()
    with TopicWriter(Topic.open(layout.topic("a")), "other") as writer:
        writer.append(pa.table({"id": [1000]}))
    failing = join_chains(shapes(fails=True))
    with pytest.raises(RunError, match="second failed on"):
        process_leftovers(spark, failing, layout, QUICK, retry_for_s=60.0, say=lambda _: None)


def test_a_member_that_fails_is_named(started: Started, layout: RunLayout) -> None:
    engine = started.engine(join_chains(shapes(fails=True)), layout=layout)
    put(layout, 1, 2)
    until_failed(engine)
    assert "second, in the chain of first, failed on" in engine.operator_errors["first"]
    assert "ValueError: no more" in engine.operator_errors["first"]


def until_failed(engine: Any) -> None:
    for _ in range(400):
        if engine.operator_errors:
            return
        engine.advance(0.25)


def test_the_files_of_a_run_without_chains_do_not_mention_them(
    started: Started, layout: RunLayout, tmp_path: Path
) -> None:
    engine = started.engine(shapes(), layout=layout)
    put(layout, *range(20))
    until(engine, drained(engine))
    for path in (tmp_path / "run" / "batches").rglob("*.json"):
        assert b"members" not in path.read_bytes()
