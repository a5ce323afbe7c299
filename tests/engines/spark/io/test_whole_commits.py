"""Batches that take whole commits of an input; planned without Spark."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.factories import same, source
from tests.tools.by_hand import ByHand

from penstock.engines.microbatch.admission import FIRST_ROWS
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.errors import InputError
from penstock.pipelines.description import describe
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.embedded.topic import Topic

QUICK = BatchTiming(min_interval_s=0.0)


def lists() -> Pipeline:
    """Joins lists that come in whole commits; rules come as they come."""
    pipeline = Pipeline("lists")
    pipeline.topic("lists", "id long", external=True)
    pipeline.topic("rules", "id long", external=True)
    pipeline.topic("joined", "id long, n long")

    @pipeline.sliced(
        reads=("lists", "rules"),
        writes="joined",
        key={"lists": "id"},
        broadcast=("rules",),
        state="n long",
        slices=4,
        whole_commits=("lists",),
    )
    def join(inputs: dict[str, pa.RecordBatch], state: State) -> dict[str, Any]:
        rows = inputs["lists"]
        return {"id": rows["id"], "n": rows["id"], "_event": rows["_event"]}

    return pipeline


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), min_size=1, max_size=30),
)
def test_a_batch_ends_with_a_commit_and_takes_at_least_one(
    tmp_path_factory: pytest.TempPathFactory, commits: list[int], steps: list[tuple[int, int]]
) -> None:
    hand = ByHand(tmp_path_factory.mktemp("commits") / "run", lists(), "join")
    operator = hand.pipeline.operators["join"]
    make_operator_config(hand.pipeline, operator, QUICK).save(hand.layout)
    planner, ends, end = BatchPlanner(hand.layout, "join"), [0], 0
    for rows in commits:
        hand.put([{"id": number} for number in range(rows)], "lists")
        ends.append(ends[-1] + rows)
    offset: dict[str, Any] = {"at": {"lists": 0, "rules": 0}, "skips": {}}
    for rules, replicas in steps:
        if rules:
            hand.put([{"id": 0}] * rules, "rules")
        hand.order(replicas)
        before, offset = offset, planner.next_offset(offset)
        end = offset["at"]["lists"]
        assert end in ends
        taken = end - before["at"]["lists"]
        # more than may be taken is one commit alone
        if taken > FIRST_ROWS * replicas:
            assert ends.index(end) == ends.index(before["at"]["lists"]) + 1
        if planner.waiting == ends[-1] - before["at"]["lists"] and taken == 0:
            assert end == ends[-1]


def test_all_rows_come_however_large_a_commit_is(tmp_path: Any) -> None:
    hand = ByHand(tmp_path / "run", lists(), "join")
    make_operator_config(hand.pipeline, hand.pipeline.operators["join"], QUICK).save(hand.layout)
    for rows in (1, 5000, 3, 700):
        hand.put([{"id": number} for number in range(rows)], "lists")
    ends = set()
    for replicas in (1, 3, 2, 4):
        hand.order(replicas)
        start: dict[str, Any] = {"at": dict(hand.at), "skips": {}}
        hand.run_between(start, hand.mind().next_offset(start), replicas)
        ends.add(hand.at["lists"])
    assert ends <= {1, 5001, 5004, 5704}
    assert max(ends) == 5704
    assert Topic.open(hand.layout.topic("joined")).end == 5704


def test_a_batch_that_begins_inside_a_commit_ends_with_it(tmp_path: Any) -> None:
    hand = ByHand(tmp_path / "run", lists(), "join")
    hand.put([{"id": number} for number in range(500)], "lists")
    offset = {"at": {"lists": 3, "rules": 0}, "skips": {}}
    assert BatchPlanner(hand.layout, "join").next_offset(offset)["at"]["lists"] == 500


def test_the_option_is_checked_and_described() -> None:
    pipeline = source()
    pipeline.topic("out", "id long, amount double")
    copy = pipeline.batches("orders", "out", whole_commits=True)(same)
    assert copy.options.whole_commits == ("orders",)
    pipeline.check()
    assert describe(pipeline)["operators"]["same"]["options"]["whole_commits"] == ["orders"]
    for options, problem in (
        ({"whole_commits": ("order",)}, "'order' is not read"),
        ({"whole_commits": True, "queue_size": 5}, "commits are not whole if rows are dropped"),
    ):
        pipeline.operators.clear()
        pipeline.batches("orders", "out", **options)(same)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=problem):
            pipeline.check()
