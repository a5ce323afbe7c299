"""Where batches end; planned without Spark."""

import threading
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.replica_vote import ReplicaVote, VotingRules, update_memory
from penstock.engines.spark.io import batch_begin, source
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.plans import BatchPlan
from penstock.engines.spark.io.source import TASK, TopicReader
from penstock.engines.spark.operator_config import (
    BatchTiming,
    OperatorConfig,
    make_operator_config,
)
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.cluster import KafkaCluster, save_cluster


def build_pipeline() -> Pipeline:
    """One operator with Spark's own state, and one that passes rows on to it."""
    pipeline = Pipeline("times")
    pipeline.topic("raw", "at timestamp", external=True)
    pipeline.topic("clean", "at timestamp")
    pipeline.topic("windows", "at timestamp")

    @pipeline.batches(reads="raw", writes="clean")
    def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.native(reads="clean", writes="windows")
    def count(frame: Any) -> Any:
        raise AssertionError("nothing starts here")

    return pipeline


class Input:
    """The topic that an operator reads, written in parts of source batches."""

    def __init__(self, layout: RunLayout, name: str) -> None:
        self._topic, self._commits = Topic.open(layout.topic(name)), 0

    def put(self, rows: int, *, is_complete: bool) -> None:
        table = pa.table({name: [0] * rows for name in self._topic.schema.names})
        writer = self._topic.segment_writer()
        writer.write(table.cast(self._topic.schema).to_batches()[0])
        segment = writer.close()
        assert segment is not None
        self._topic.publish("test", self._commits, [segment], 1.0, is_complete=is_complete)
        self._commits += 1


@pytest.mark.parametrize(
    ("operator", "reads", "ends"),
    [
        # Spark would take the newest time of a part for that of all
        pytest.param("count", "clean", [0, 7, 7], id="Spark's own state waits for the whole"),
        pytest.param("copy", "raw", [3, 7, 9], id="others read a part, if there is no more"),
    ],
)
def test_batches_end_where_source_batches_end(
    layout: RunLayout, operator: str, reads: str, ends: list[int]
) -> None:
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    timing = BatchTiming(min_interval_s=0.0)
    make_operator_config(pipeline, pipeline.operators[operator], timing).save(layout)
    write_command(layout, operator, Command(replicas=1))
    planner, topic = BatchPlanner(layout, operator, reads), Input(layout, reads)
    offset: dict[str, Any] = {"at": {reads: 0}, "skips": {}}
    found = []
    for rows, is_complete in ((3, False), (4, True), (2, False)):
        topic.put(rows, is_complete=is_complete)
        offset = planner.next_offset(offset)
        found.append(offset["at"][reads])
    assert found == ends


def test_batches_of_an_egress_grow_with_what_it_writes(layout: RunLayout) -> None:
    pipeline = build_pipeline()

    @pipeline.egress(reads="windows")
    def save(frame: Any) -> Any:
        raise AssertionError("nothing starts here")

    make_topics(pipeline, layout)
    make_operator_config(pipeline, save, BatchTiming(min_interval_s=0.0)).save(layout)
    write_command(layout, "save", Command(replicas=1))
    planner, topic = BatchPlanner(layout, "save", "windows"), Input(layout, "windows")
    topic.put(2000, is_complete=True)
    start: dict[str, Any] = {"at": {"windows": 0}, "skips": {}}
    rows = []
    for _ in range(3):
        end = planner.next_offset(start)
        planner.plan(start, end)
        rows.append(end["at"]["windows"] - start["at"]["windows"])
        start = end
    assert rows == [8, 8 * 16, 2000 - 8 - 8 * 16]


# --- without a controller

RULES = VotingRules(max_replicas=4, interval_s=0.1, drain_s=2.0)


class Voters:
    """The planner of an operator whose replicas vote as they are told."""

    def __init__(self, layout: RunLayout, rules: VotingRules = RULES, replicas: int = 1) -> None:
        pipeline = build_pipeline()
        make_topics(pipeline, layout)
        timing = BatchTiming(min_interval_s=0.0)
        operator = pipeline.operators["copy"]
        make_operator_config(pipeline, operator, timing, rules).save(layout)
        write_command(layout, "copy", Command(replicas=replicas))
        self.layout, self.log = layout, BatchLog(layout.batches("copy"))
        self.input = Input(layout, "raw")
        self.start: dict[str, Any] = {"at": {"raw": 0}, "skips": {}}
        self.batch = 0
        self.restart()

    def restart(self) -> None:
        self.planner = BatchPlanner(self.layout, "copy", "raw")

    def plan(self) -> BatchPlan:
        self.end = self.planner.next_offset(self.start)
        return self.planner.plan(self.start, self.end)

    def run(self, *changes: int) -> BatchPlan:
        """Plan a batch and commit it with these votes."""
        plan = self.plan()
        self.commit(plan, *changes)
        return plan

    def commit(self, plan: BatchPlan, *changes: int) -> None:
        tasks = []
        for task, change in zip(plan.tasks, changes, strict=True):
            assert task.view is not None
            rows = task.own_rows
            record = TaskRecord(
                rows_in=rows, rows_out=rows, busy_s=0.1, cpu_s=None, began=0.0, ended=0.1
            )
            vote = ReplicaVote(change=change, load=1, capacity=1, siblings=1, probability=0)
            memory = update_memory(task.view, rows, 0.1)
            tasks.append(replace(record, vote=vote, memory=memory))
        self.log.put(
            BatchRecord(
                batch=self.batch,
                start=plan.start,
                end=plan.end,
                planned_at=plan.planned_at,
                committed_at=plan.planned_at + 0.2,
                tasks=tuple(tasks),
                waiting=plan.waiting,
            )
        )
        self.batch, self.start = self.batch + 1, self.end


def test_votes_take_effect_at_the_next_batch(layout: RunLayout) -> None:
    voters, replicas = Voters(layout), []
    for changes in ((2,), (0, 1, 0), (0, -1, -1, 0), (5, 0), (0, 0, 0, 0)):
        voters.input.put(8, is_complete=True)
        replicas.append(len(voters.run(*changes).tasks))
    assert replicas == [1, 3, 4, 2, 4]


def test_a_command_does_not_overrule_votes(layout: RunLayout) -> None:
    voters = Voters(layout)
    voters.input.put(8, is_complete=True)
    voters.run(1)
    write_command(layout, "copy", Command(replicas=4))
    voters.input.put(8, is_complete=True)
    assert len(voters.plan().tasks) == 2


def test_a_batch_planned_again_after_a_kill_has_the_same_replicas(layout: RunLayout) -> None:
    voters = Voters(layout)
    voters.input.put(8, is_complete=True)
    voters.run(2)
    voters.input.put(8, is_complete=True)
    before = voters.plan()
    voters.restart()  # Spark knows the offsets of the batch and asks for its tasks only
    again = voters.planner.plan(voters.start, voters.end)
    assert [task.parts for task in again.tasks] == [task.parts for task in before.tasks]
    assert [task.view.memory for task in again.tasks if task.view] == [
        task.view.memory for task in before.tasks if task.view
    ]


def test_a_replica_sees_what_arrives_and_what_is_left(layout: RunLayout) -> None:
    voters = Voters(layout)
    voters.input.put(20, is_complete=True)
    first = voters.run(0)  # the very first batch takes few rows
    (task,) = first.tasks
    assert task.view is not None
    taken = task.own_rows
    # what came before the first batch is nobody's load
    assert (task.view.arrived, task.view.left) == (taken, 20 - taken)
    voters.input.put(5, is_complete=True)
    (task,) = voters.plan().tasks
    assert task.view is not None
    assert task.view.arrived == 5
    assert task.view.memory is not None
    assert task.view.left == 25 - taken - task.own_rows


def test_idle_replicas_get_batches_without_rows_until_they_have_stopped(layout: RunLayout) -> None:
    rules = replace(RULES, interval_s=1.0)  # long enough for a busy machine
    voters = Voters(layout, rules)
    voters.input.put(8, is_complete=True)
    voters.run(2)
    assert voters.planner.next_offset(voters.start) == voters.start
    time.sleep(rules.interval_s)
    empty = voters.run(0, -1, -1)
    assert [task.own_rows for task in empty.tasks] == [0, 0, 0]
    time.sleep(rules.interval_s)
    assert voters.planner.next_offset(voters.start) == voters.start
    voters.input.put(8, is_complete=True)
    assert [task.own_rows for task in voters.plan().tasks] == [8]


def test_with_a_controller_nobody_votes(layout: RunLayout) -> None:
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    config = make_operator_config(pipeline, pipeline.operators["copy"], BatchTiming())
    config.save(layout)
    write_command(layout, "copy", Command(replicas=2))
    topic = Input(layout, "raw")
    topic.put(8, is_complete=True)
    planner, start = BatchPlanner(layout, "copy", "raw"), {"at": {"raw": 0}, "skips": {}}
    plan = planner.plan(start, planner.next_offset(start))
    assert [task.view for task in plan.tasks] == [None, None]


def test_rules_reach_the_source_but_not_that_of_sparks_own_state(layout: RunLayout) -> None:
    pipeline = build_pipeline()
    make_operator_config(pipeline, pipeline.operators["copy"], BatchTiming(), RULES).save(layout)
    assert OperatorConfig.load(layout, "copy").voting == RULES
    native = make_operator_config(pipeline, pipeline.operators["count"], BatchTiming(), RULES)
    assert native.voting is None


# --- intervals between batches


class Planned:
    """The planner of an operator, with a time between batches that a command sets."""

    def __init__(self, layout: RunLayout, interval_s: float | None, *, hold: bool = False) -> None:
        pipeline = build_pipeline()
        make_topics(pipeline, layout)
        timing = BatchTiming(min_interval_s=0.0, overhead_share=0.2)
        make_operator_config(pipeline, pipeline.operators["copy"], timing).save(layout)
        write_command(layout, "copy", Command(replicas=1, interval_s=interval_s, hold=hold))
        self.planner, self.topic = BatchPlanner(layout, "copy"), Input(layout, "raw")
        self.start: dict[str, Any] = {"at": {"raw": 0}, "skips": {}}

    def plan(self) -> int:
        """Plan a batch, if there is one; return where it ends."""
        end = self.planner.next_offset(self.start)
        if end != self.start:
            self.planner.plan(self.start, end)
        self.start = end
        reached: int = end["at"]["raw"]
        return reached


def test_a_command_sets_the_time_between_batches(layout: RunLayout) -> None:
    planned = Planned(layout, 0.4)
    planned.topic.put(3, is_complete=True)
    assert planned.plan() == 3
    planned.topic.put(2, is_complete=True)
    assert planned.plan() == 3
    assert 0 < planned.planner.batch_begin.wait_s <= 0.4
    time.sleep(planned.planner.batch_begin.wait_s)
    assert planned.plan() == 5


def test_a_full_batch_needs_no_long_interval(layout: RunLayout) -> None:
    planned = Planned(layout, 60.0)
    planned.topic.put(3, is_complete=True)
    assert planned.plan() == 3
    planned.topic.put(5, is_complete=True)  # the first batches take 8 rows
    assert planned.plan() == 3
    planned.topic.put(30, is_complete=True)
    assert 3 < planned.plan() < planned.plan()


def test_a_source_on_hold_answers_at_once(layout: RunLayout) -> None:
    planned = Planned(layout, None, hold=True)
    planned.topic.put(3, is_complete=True)
    assert planned.plan() == 0
    assert planned.planner.batch_begin.wait_s == 0


# --- sources that wait


def make_reader(layout: RunLayout, *, waits: bool = True) -> tuple[TopicReader, Input]:
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    timing = BatchTiming(min_interval_s=0.0, overhead_share=0.2 if waits else None)
    make_operator_config(pipeline, pipeline.operators["copy"], timing).save(layout)
    write_command(layout, "copy", Command(replicas=1))
    return TopicReader(str(layout.run), "copy", TASK, None), Input(layout, "raw")


NOTHING: dict[str, Any] = {"at": {"raw": 0}, "skips": {}}


def test_a_source_answers_as_soon_as_rows_are_committed(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "IDLE_S", 60.0)
    monkeypatch.setattr(batch_begin, "IDLE_S", 60.0)
    reader, topic = make_reader(layout)
    timer = threading.Timer(0.3, topic.put, (3,), {"is_complete": True})
    timer.start()
    began = time.monotonic()
    end = reader.latestOffset(NOTHING, ReadAllAvailable())
    assert end["at"] == {"raw": 3}
    assert 0.2 < time.monotonic() - began < 30
    timer.join()
    reader.stop()


def test_a_waiting_source_obeys_a_command_at_once(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "IDLE_S", 60.0)
    monkeypatch.setattr(batch_begin, "IDLE_S", 60.0)
    reader, _ = make_reader(layout)
    hold = Command(replicas=1, hold=True)
    timer = threading.Timer(0.3, write_command, (layout, "copy", hold))
    timer.start()
    began = time.monotonic()
    assert reader.latestOffset(NOTHING, ReadAllAvailable()) == NOTHING
    assert 0.2 < time.monotonic() - began < 30
    timer.join()


def test_a_source_without_rows_answers_after_a_while(layout: RunLayout) -> None:
    reader, _ = make_reader(layout)
    began = time.monotonic()
    assert reader.latestOffset(NOTHING, ReadAllAvailable()) == NOTHING
    assert time.monotonic() - began >= 0.9 * batch_begin.IDLE_S


def test_a_source_of_fixed_intervals_never_waits(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "IDLE_S", 60.0)
    reader, _ = make_reader(layout, waits=False)
    began = time.monotonic()
    assert reader.latestOffset(NOTHING, ReadAllAvailable()) == NOTHING
    assert time.monotonic() - began < 30


def test_a_batch_in_kafka_keeps_its_tasks(layout: RunLayout) -> None:
    """Tasks that have written to Kafka must read the same rows when their batch runs again."""
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    make_operator_config(pipeline, pipeline.operators["copy"], BatchTiming()).save(layout)
    Input(layout, "raw").put(100, is_complete=True)
    start, end = ({"at": {"raw": offset}, "skips": {}} for offset in (0, 60))
    rows = {}
    for place in ("files", "kafka"):
        if place == "kafka":
            save_cluster(layout.topics, KafkaCluster(parse_address("kafka://a:1/shop")))
        for replicas in (3, 5):
            write_command(layout, "copy", Command(replicas=replicas))
            plan = BatchPlanner(layout, "copy").plan(start, end)
            rows[place, replicas] = [task.own_rows for task in plan.tasks]
    assert rows["files", 3] == [20] * 3 and rows["files", 5] == [12] * 5
    # in Kafka the plan that was saved first counts, whatever the policy wants now
    assert rows["kafka", 3] == rows["kafka", 5] == [20] * 3
    after = {"at": {"raw": 100}, "skips": {}}
    assert len(BatchPlanner(layout, "copy").plan(end, after).tasks) == 5
