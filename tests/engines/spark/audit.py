"""Reads every row that is ever published, while retention removes what was read."""

import threading
from pathlib import Path

import pyarrow as pa

from penstock.errors import TopicError
from penstock.topics.check import check
from penstock.topics.readers import save_position
from penstock.topics.schema import EVENT, without_event
from penstock.topics.topic import Topic

READER = "auditor"


class Auditor:
    """One more reader of every topic: what it has seen is what any reader could have seen."""

    def __init__(self, topics: dict[str, Path], every_s: float = 0.3) -> None:
        self._topics = {name: Topic.open(path) for name, path in topics.items()}
        self._read: dict[str, list[pa.RecordBatch]] = {name: [] for name in topics}
        self._position = dict.fromkeys(topics, 0)
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

    def _read_on(self, name: str, topic: Topic) -> None:
        start, end = self._position[name], topic.refresh()
        if start == end:
            return
        for batch in topic.read(start, end):
            # copied: the files go, and memory maps of them should too
            rows = pa.RecordBatch.from_pylist(
                batch.drop_columns([EVENT]).to_pylist(), without_event(topic.schema)
            )
            self._read[name].append(rows)
            self._position[name] += len(rows)
        save_position(topic.directory, READER, end)
