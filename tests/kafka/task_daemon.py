"""Forks a process for each task of a batch, as Spark's daemon does; a test says what and kills.

Reads lines {"source": options, "sink": options, "start": ..., "end": ..., "index": ..., "query":
..., "batch": ...}; prints {"pid": ...} when a task begins, and {"pid": ..., "code": ...} when all
is over. Each task reads its share of a Kafka topic and writes it to another one.
"""

import json
import os
import sys
from typing import Any

import pyspark

from penstock.engines.spark.kafka.sink import KafkaTarget
from penstock.engines.spark.kafka.source import KafkaSource


class Context:
    """What Spark says of a task."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task

    def getLocalProperty(self, key: str) -> str:  # noqa: N802
        return str(self._task["query" if key.endswith("queryId") else "batch"])

    def partitionId(self) -> int:  # noqa: N802
        return int(self._task["index"])


def run_task(task: dict[str, Any]) -> None:
    """Read and write what one task does."""
    context = Context(task)
    pyspark.TaskContext.get = lambda: context  # type: ignore[assignment, return-value]
    source = KafkaSource(task["source"])
    reader = source.streamReader(source.schema())
    share = reader.partitions(task["start"], task["end"])[task["index"]]
    sink = KafkaTarget(task["sink"]).streamWriter(source.schema(), False)
    sink.write(reader.read(share))


def main() -> None:
    """Fork until the input ends."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                run_task(json.loads(line))
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        print(json.dumps({"pid": child}), flush=True)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"pid": child, "code": code}), flush=True)


if __name__ == "__main__":
    main()
