"""Whatever dies when: every row is in every topic exactly once, and nothing is left behind."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.tools import chaos

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import BatchPlan, TaskInput, save_plan
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.io.sink import TopicSink
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.check import check
from penstock.topics.embedded.readers import positions, save_position
from penstock.topics.embedded.retention import MIN_LEFTOVER_AGE_S, trim
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

SEED = 20_160_112


@pytest.mark.spark
def test_no_kill_loses_or_doubles_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = ("worker", "source", "committer", "daemon", "driver", "jvm")
    monkeypatch.setattr(chaos, "EARLY", 1.0)  # the last one comes while everything starts again
    outcome = chaos.wreak(tmp_path, kills=len(turns), seed=SEED, records=400, turns=turns)
    print(chaos.table(outcome))
    assert outcome.wrong == []
    assert sum(outcome.kills.values()) >= 5
    assert outcome.early == 1
    assert outcome.restarts >= 2
    assert outcome.produced >= 400


# --- the moments that a random kill seldom meets, one by one and without Spark


class Operator:
    """The sink of an operator with two outputs, without the tasks before it."""

    def __init__(self, run: Path) -> None:
        self.layout, self.pipeline = RunLayout(run), Pipeline("two-outputs")
        self.pipeline.topic("a", "id long")
        self.pipeline.topic("b", "id long")

        @self.pipeline.produces("a")
        def rows(first_id: int, due: pa.Array) -> pa.Table:
            raise NotImplementedError

        @self.pipeline.batches("a", "b", on_error="dead-letter")
        def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

        self.operator = copy
        make_topics(self.pipeline, self.layout)
        self.topics = {name: Topic.open(self.layout.topic(name)) for name in copy.fills}
        schemas = {name: topic.schema for name, topic in self.topics.items()}
        bundle = OperatorBundle(operator=copy, kind=find_spark_kind(copy.kind), outputs=schemas)
        save_bundle(self.layout.code("copy"), bundle)
        self._schemas = schemas
        self.sink = TopicSink(str(run), "copy")

    def attempt(self, *tasks: list[int]) -> list[TaskMessage]:
        """Let tasks write ids, each of them to both topics; nothing is committed yet."""
        messages = []
        for ids in tasks:
            with TaskOutputs(self.layout, self._schemas) as outputs:
                outputs.write(_good(ids, self._schemas["b"]))
                outputs.write(_bad(ids, self._schemas["copy-errors"]), "copy-errors")
                done = TaskRecord(
                    rows_in=len(ids), rows_out=len(ids), busy_s=1, cpu_s=1, began=0, ended=1
                )
                messages.append(TaskMessage(done, outputs.events(), outputs.close()))
        plan = BatchPlan(
            start={"a": 0},
            end={"a": 1},
            planned_at=0,
            tasks=tuple(
                TaskInput(index=number, replicas=len(tasks), parts=())
                for number in range(len(tasks))
            ),
        )
        save_plan(self.layout.plan("copy"), plan)
        return messages

    def ids(self) -> dict[str, list[int]]:
        """What everybody can read, by topic."""
        found = {}
        for name, topic in self.topics.items():
            topic.refresh()
            column = "id" if name == "b" else "offset"
            batches = topic.read(topic.first, topic.end)
            found[name] = [number for batch in batches for number in batch[column].to_pylist()]
            assert check(topic) == []
        return found

    def segments(self) -> int:
        """Files of rows, published or not."""
        layout = [self.layout.topic(name) / "segments" for name in self.topics]
        return sum(len(list(place.iterdir())) for place in layout)


def _good(ids: list[int], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": ids, "_event": [0] * len(ids)}, schema=schema)


def _bad(ids: list[int], schema: pa.Schema) -> pa.RecordBatch:
    text = [""] * len(ids)
    columns = {"topic": text, "offset": ids, "error": text, "row": text, "_event": [0] * len(ids)}
    return pa.RecordBatch.from_pydict(columns, schema=schema)


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.fixture
def one(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


@pytest.fixture(params=["record", "first topic", "second topic"])
def killed_after(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let the next commit die right after one of its steps, as a kill would."""
    steps = {"record": 0, "first topic": 1, "second topic": 2}
    left, publish = steps[request.param], Topic.publish

    def until_killed(topic: Topic, *given: object, **named: object) -> bool:
        nonlocal left
        if left == 0:
            monkeypatch.setattr(Topic, "publish", publish)
            raise Killed
        left -= 1
        done = publish(topic, *given, **named)  # type: ignore[arg-type]
        if left == 0 and request.param == "second topic":
            monkeypatch.setattr(Topic, "publish", publish)
            raise Killed
        return done

    monkeypatch.setattr(Topic, "publish", until_killed)
    yield request.param


@pytest.mark.parametrize("aborted", [False, True])
def test_a_commit_that_dies_is_run_again_as_it_was(
    one: Operator, killed_after: str, aborted: bool
) -> None:
    first = one.attempt([1, 2], [3])
    with pytest.raises(Killed):
        one.sink.commit(first, 0)
    if aborted:  # Spark does so if the process of the commit dies, but not if the JVM does
        one.sink.abort(first, 0)
    one.sink.commit(one.attempt([1], [2], [3]), 0)
    one.sink.commit(one.attempt([4]), 1)
    assert one.ids() == {"b": [1, 2, 3, 4], "copy-errors": [1, 2, 3, 4]}
    assert one.segments() == 6


@pytest.mark.parametrize("age_s", [0.0, MIN_LEFTOVER_AGE_S + 1])
def test_a_start_finishes_a_commit_before_it_removes_leftovers(
    one: Operator, killed_after: str, age_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Killed):
        one.sink.commit(one.attempt([1, 2], [3]), 0)
    one.attempt([1, 2, 3])  # killed before it could commit
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age_s)
    recover(one.pipeline, one.layout)
    assert one.ids() == {"b": [1, 2, 3], "copy-errors": [1, 2, 3]}
    assert one.segments() == (4 if age_s else 6)
    one.sink.commit(one.attempt([1, 2, 3]), 0)
    assert one.ids() == {"b": [1, 2, 3], "copy-errors": [1, 2, 3]}


def test_tasks_beside_a_failed_one_leave_nothing(one: Operator) -> None:
    messages = one.attempt([1, 2], [3])
    one.sink.abort([messages[0], None], 0)
    assert one.segments() == 2


def test_a_commit_that_is_asked_twice_keeps_its_rows(one: Operator) -> None:
    messages = one.attempt([1, 2])
    one.sink.commit(messages, 0)
    one.sink.commit(messages, 0)
    assert one.ids()["b"] == [1, 2]


def test_a_failure_that_another_try_mended_is_forgotten(one: Operator) -> None:
    failure = failures.Failure(topic="a", first=0, end=1, trace="ValueError: no")
    failures.save(one.layout, "copy", failure)
    assert failures.load(one.layout, "copy") == failure
    one.sink.commit(one.attempt([1]), 0)
    assert failures.load(one.layout, "copy") is None


def test_rows_wait_for_readers_that_have_not_begun(one: Operator) -> None:
    recover(one.pipeline, one.layout)
    topic = Topic.open(one.layout.topic("a"))
    save_position(topic.directory, "another", 5)
    with TopicWriter(topic, "feed") as writer:
        for number in range(10):
            writer.append(pa.table({"id": [number]}))
    assert positions(topic.directory) == {"another": 5, "copy": 0}
    assert trim(topic, time.time()) == 0
    save_position(topic.directory, "copy", 3)
    recover(one.pipeline, one.layout)
    assert positions(topic.directory)["copy"] == 3
