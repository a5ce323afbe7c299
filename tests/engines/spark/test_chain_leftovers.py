"""Rows between the members of a chain, from a start at which each had a query."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.tools.by_hand import ByHand

from penstock.engines.spark.chain_leftovers import find_leftovers
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.chained_pipeline import join_chains, separate_followers
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.operator_totals import read_accounts


def row_of_four() -> Pipeline:
    pipeline = Pipeline("row")
    pipeline.topic("t0", "id long", external=True)
    for number in range(1, 5):
        pipeline.topic(f"t{number}", "id long")

        def function(batch: pa.RecordBatch) -> Any:
            return batch

        function.__name__ = f"op{number}"
        pipeline.batches(f"t{number - 1}", f"t{number}")(function)
    return pipeline


def step(run: Path, pipeline: Pipeline, name: str, rows: int, *, batch: int = 0) -> None:
    hand = ByHand(run, pipeline, name)
    hand.batch = batch
    hand.at = dict.fromkeys(hand.at, 10 * batch)
    hand.run(10 * batch + rows, 1)


def test_rows_that_wait_for_followers_are_found(tmp_path: Path) -> None:
    pipeline = row_of_four()
    make_topics(pipeline, RunLayout(tmp_path))
    joined = join_chains(pipeline)
    layout = RunLayout(tmp_path)
    assert find_leftovers(joined, layout) == {}
    hand = ByHand(tmp_path, pipeline, "op1")
    hand.put([{"id": number} for number in range(10)], "t0")
    hand.run(10, 1)
    assert find_leftovers(joined, layout) == {"op2": 10}
    step(tmp_path, pipeline, "op2", 10)
    step(tmp_path, pipeline, "op3", 4)
    assert find_leftovers(joined, layout) == {"op3": 6, "op4": 4}


def test_the_followers_behind_waiting_rows_run_first() -> None:
    pipeline = row_of_four()
    followers = separate_followers(join_chains(pipeline), {"op3": 6})
    assert {*followers.operators} == {"op3", "op4"}
    assert followers.check().upstream == {"op3": (), "op4": ("op3",)}
    assert followers.topics["t2"].external and not followers.topics["t3"].external
    assert followers.origin is pipeline and not followers.feeds
    assert pipeline.declared["t2"].external is False


def test_rows_are_counted_once_when_a_chain_is_joined(tmp_path: Path) -> None:
    """Two operators have written to the last topic, one after the other."""
    pipeline = row_of_four()
    hand = ByHand(tmp_path, pipeline, "op1")
    hand.put([{"id": number} for number in range(10)], "t0")
    hand.run(10, 1)
    for name in ("op2", "op3", "op4"):
        step(tmp_path, pipeline, name, 10)
    chained = ByHand(tmp_path, join_chains(pipeline), "op1")
    chained.batch, chained.at = 1, {"t0": 10}
    chained.put([{"id": number} for number in range(10, 20)], "t0")
    chained.run(20, 1)
    for view in (pipeline, join_chains(pipeline)):
        accounts = read_accounts(view, RunLayout(tmp_path))
        assert [(a.lost, a.doubled, a.waiting) for a in accounts.values()] == [(0, 0, 0)] * 4
    assert len([*chained.out("t4")]) == 20
