"""Accounts of operators whose functions filter, add, and fail on rows; the sink runs for real."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.engines.spark.io.batch_log import MAX_RECORDS, BatchLog
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.sink import TopicSink
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.batch_task import run_batch_task
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.operator_totals import read_accounts
from penstock.runs.spark_result import OperatorAccount
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

ROWS = 40


def change(batch: pa.RecordBatch) -> dict[str, Any]:
    """Leave out odd rows, give rows of ten three times, fail on row 12."""
    ids = batch["id"].to_pylist()
    if 12 in ids:
        raise ValueError("twelve")
    return {"id": [i for i in ids if i % 2 == 0 for _ in range(3 if i % 10 == 0 else 1)]}


class Run:
    """One operator without Spark: its source, tasks and commits."""

    def __init__(self, layout: RunLayout) -> None:
        self.layout, self.pipeline = layout, Pipeline("accounts")
        self.pipeline.topic("in", "id long", external=True)
        self.pipeline.topic("out", "id long")
        decorate = self.pipeline.batches("in", "out", chunk_rows=1, on_error="dead-letter")
        self.operator = decorate(change)
        make_topics(self.pipeline, layout)
        schemas = {name: Topic.open(layout.topic(name)).schema for name in self.operator.fills}
        self.bundle = OperatorBundle(
            operator=self.operator, kind=find_spark_kind("batch"), outputs=schemas
        )
        save_bundle(layout.code("change"), self.bundle)
        make_operator_config(self.pipeline, self.operator, BatchTiming()).save(layout)
        write_command(layout, "change", Command(replicas=2))
        with TopicWriter(Topic.open(layout.topic("in")), "test") as writer:
            writer.append(pa.table({"id": list(range(ROWS))}))

    def batch(self, number: int, start: int, end: int) -> None:
        bounds = [{"at": {"in": offset}, "skips": {}} for offset in (start, end)]
        messages = []
        for task in BatchPlanner(self.layout, "change").plan(*bounds).tasks:
            with TaskOutputs(self.layout, self.bundle.outputs) as outputs:
                done = run_batch_task(self.layout, self.bundle, task, outputs)
                messages.append(TaskMessage(done, outputs.events(), outputs.close()))
        TopicSink(str(self.layout.run), "change").commit(messages, number)

    @property
    def account(self) -> OperatorAccount:
        return read_accounts(self.pipeline, self.layout)["change"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(RunLayout(tmp_path))


def test_every_row_is_accounted_for(run: Run) -> None:
    for number in range(4):
        run.batch(number, number * 10, number * 10 + 10)
    account = run.account
    assert (account.rows_in, account.put_aside, account.waiting) == (ROWS, 1, 0)
    # of 40 rows 20 are odd; 0, 10, 20 and 30 come three times; 12 was put aside
    assert (account.filtered, account.expanded, account.rows_out) == (20, 8, 20 - 1 + 8)
    assert (account.lost, account.doubled) == (0, 0)


def test_old_records_may_be_removed(run: Run) -> None:
    for number in range(4):
        run.batch(number, number * 10, number * 10 + 10)
    before = run.account
    for path in sorted(run.layout.batches("change").glob("[0-9]*.json"))[:-1]:
        path.unlink()
    assert run.account == before
    assert MAX_RECORDS < 1000


def test_rows_that_wait_are_not_lost(run: Run) -> None:
    run.batch(0, 0, 10)
    assert (run.account.waiting, run.account.lost) == (ROWS - 10, 0)


def test_rows_that_no_batch_took_are_lost(run: Run) -> None:
    run.batch(0, 0, 10)
    run.batch(1, 17, 20)
    assert (run.account.lost, run.account.doubled) == (7, 0)


def test_rows_that_are_recorded_and_not_published_are_lost(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.batch(0, 0, 10)
    monkeypatch.setattr(Topic, "publish", lambda *_, **__: True)
    run.batch(1, 10, 20)
    record = BatchLog(run.layout.batches("change")).last()
    assert record is not None
    assert run.account.lost == record.rows_out > 0
