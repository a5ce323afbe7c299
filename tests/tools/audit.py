"""Reads every row that is ever published, while retention removes what was read."""

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.errors import TopicError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.topic import Topic
from penstock.topics.partition import Partition
from penstock.topics.schema import EVENT, without_event

READER = "auditor"


class Auditor:
    """One more reader of every topic: what it has seen is what any reader could have seen."""

    def __init__(
        self,
        topics: dict[str, Path],
        every_s: float = 0.3,
        batches: Mapping[str, Path] = FrozenDict(),
    ) -> None:
        self._topics = {name: Topic.open(path) for name, path in topics.items()}
        self._read: dict[str, list[pa.RecordBatch]] = {name: [] for name in topics}
        self._position = dict.fromkeys(topics, 0)
        self._logs = {operator: BatchLog(path) for operator, path in batches.items()}
        #: First and end offset of every batch of operators that read one topic.
        self.batches: dict[str, list[tuple[int, int]]] = {operator: [] for operator in batches}
        #: Of topics in the order of slices: where a batch must end at least to take each row.
        self.reached: dict[str, list[int]] = {
            name: [] for name, topic in self._topics.items() if topic.partition is not None
        }
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        #: What went wrong while it read, or was damaged afterwards.
        self.problems: list[str] = []
        for path in topics.values():
            save_position(path, READER, 0)
        self._thread.start()

    def finish(self) -> dict[str, pa.Table]:
        """Read the rest, look at every file that is left, and return all rows ever seen."""
        self._stop.set()
        self._thread.join()
        self._look()
        for name, topic in self._topics.items():
            self.problems += [f"{name}: {damage}" for damage in check(topic)]
        return {
            name: pa.Table.from_batches(batches, without_event(self._topics[name].schema))
            for name, batches in self._read.items()
        }

    @property
    def produced(self) -> dict[str, int]:
        """Rows seen in each topic."""
        return dict(self._position)

    def _follow(self) -> None:
        while not self._stop.wait(self._every_s):
            self._look()

    def _look(self) -> None:
        for name, topic in self._topics.items():
            try:
                self._read_on(name, topic)
            except TopicError as error:
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        for operator, log in self._logs.items():
            for record in log.read_new():
                (first,), (end,) = record.start.values(), record.end.values()
                self.batches[operator].append((first, end))

    def _read_on(self, name: str, topic: Topic) -> None:
        start, end = self._position[name], topic.refresh()
        if start == end:
            return
        for batch in topic.read(start, end):
            if topic.partition is not None:
                self.reached[name] += _reached(topic.partition, batch, self._position[name])
            # copied: the files go, and memory maps of them should too
            rows = pa.RecordBatch.from_pylist(
                batch.drop_columns([EVENT]).to_pylist(), without_event(topic.schema)
            )
            self._read[name].append(rows)
            self._position[name] += len(rows)
        save_position(topic.directory, READER, end)


def _reached(partition: Partition, batch: pa.RecordBatch, first: int) -> list[int]:
    """Say where a batch must end to take each row of a record batch that begins at an offset.

    A record batch that is cut at a part of its rows is cut at that part of each slice.
    """
    rows, counts = partition.sort(batch)
    assert rows.equals(batch), "the rows of a record batch are not in the order of slices"
    place = np.concatenate([np.arange(1, count + 1) for count in counts])
    ends: list[int] = (first - (-place * batch.num_rows // np.repeat(counts, counts))).tolist()
    return ends
