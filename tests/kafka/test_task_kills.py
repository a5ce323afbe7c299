"""Batches as Spark runs them, without Spark: tasks are killed at any moment, batches repeated."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.engines.spark.kafka.test_source import reader_of
from tests.kafka.topics import differences, make_topic, produce, read_topic
from tests.tools.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]
ROWS, BATCH_ROWS, TASKS = 24_000, 6000, 3


class TaskDaemon:
    """The processes of tasks, one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kafka.task_daemon"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.killed = 0

    def run(self, task: dict[str, Any], kill_after_s: float | None) -> bool:
        """Run a task, perhaps kill it; return whether it ended well."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        pid = json.loads(self._process.stdout.readline())["pid"]
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            with suppress(ProcessLookupError):  # it was faster
                os.kill(pid, signal.SIGKILL)
        code = json.loads(self._process.stdout.readline())["code"]
        assert code in (0, -signal.SIGKILL)
        self.killed += code != 0
        return bool(code == 0)

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def test_each_row_once_whichever_task_is_killed(broker: KafkaBroker) -> None:
    choice = random.Random(20)
    make_topic(broker, "tasks-in", 2)
    produce(broker, "tasks-in", ({"id": number} for number in range(ROWS)))
    reader = reader_of(broker, "tasks-in", tasks=str(TASKS), schema="id long")
    source = {**reader._options, "schema": "id long"}
    sink = {"address": make_topic(broker, "tasks-out", 2), "values": "json", "id_prefix": "kills"}
    daemon, here, batch = TaskDaemon(), reader.initialOffset(), 0
    while (there := plan(reader, here)) != here:
        task = {"source": source, "sink": sink, "start": here, "end": there, "query": "q"}
        # the second time is the driver's restart: it does not know what was written
        for _ in range(choice.choice([1, 2])):
            for index in range(len(reader.partitions(here, there))):
                numbered = {**task, "index": index, "batch": batch}
                while not daemon.run(numbered, choice.choice([None, choice.uniform(0, 1.5)])):
                    pass
        here, batch = there, batch + 1
    daemon.close()
    found = [row["id"] for row in read_topic(broker, "tasks-out")]
    assert differences(range(ROWS), found) == ({}, {})
    seen = len(read_topic(broker, "tasks-out", "read_uncommitted"))
    print(f"{daemon.killed} kills in {batch} batches, {seen - ROWS} rows of aborted attempts")
    assert daemon.killed >= 3


def plan(reader: Any, here: dict[str, Any]) -> dict[str, Any]:

    there: dict[str, Any] = reader.latestOffset(here, ReadMaxRows(BATCH_ROWS))
    return there
