"""The broker of a run on Spark: requests and results are topics of its run directory.

The run may be in this process, in another one, or not running at all: requests wait in their topic.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from penstock.errors import TruncatedError
from penstock.pubsub.broker import Ack, Notice, NoticesRemovedError, Refusal, Request
from penstock.pubsub.operators.request_rows import make_request_rows
from penstock.pubsub.operators.result_rows import make_acks, make_notices, make_refusals
from penstock.pubsub.operators.topics import ACKS, NOTICES, REFUSALS, REQUESTS
from penstock.pubsub.pipeline import DEFAULTS, PubSubOptions, build_pipeline
from penstock.pubsub.spaces.space import Space
from penstock.topics.embedded.commit import Commit
from penstock.topics.embedded.readers import positions, save_position
from penstock.topics.embedded.retention import parse_retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

_WRITER, _READER = "broker", "broker"
#: A read returns whole commits up to this many rows, so that a backlog comes in parts.
_MAX_ROWS = 10_000


class TopicBroker:
    """Appends requests, one commit a call, and reads results commit by commit.

    What this broker has not read stays in the topics, whatever their retention says. Asking for
    rows from a position on means that everything before it was dealt with.
    """

    def __init__(self, space: Space, run: Path, options: PubSubOptions = DEFAULTS) -> None:
        self._space = space
        declared = build_pipeline(space, options).topics
        self._topics: dict[str, Topic] = {}
        for name in (REQUESTS, ACKS, REFUSALS, NOTICES):
            topic = declared[name]
            assert topic.schema is not None
            directory = run.resolve() / "topics" / name
            directory.parent.mkdir(parents=True, exist_ok=True)
            retention = parse_retention(topic.keep)
            opened = Topic.create(directory, topic.schema, retention, topic.partition)
            self._topics[name] = opened
        self._writer = TopicWriter(self._topics[REQUESTS], _WRITER)
        #: How far this broker has read.
        self._read = {name: self._register(name) for name in (ACKS, REFUSALS, NOTICES)}

    @property
    def space(self) -> Space:
        """The space that all requests belong to."""
        return self._space

    def submit(self, requests: Sequence[Request]) -> None:
        """Append requests, in this order; they survive a crash when this returns."""
        if requests:
            self.append(make_request_rows(requests, self._topics[REQUESTS].end))

    def append(self, rows: pa.Table) -> int:
        """Append rows of requests; return the number of all requests so far."""
        return self._writer.append(rows)

    def read_acks(self, position: int) -> tuple[Sequence[Ack], int]:
        """Return acks from a position on, and the next position; 0 is the first one."""
        rows, end = self._read_rows(ACKS, position)
        return [ack for part in rows for ack in make_acks(part)], end

    def read_refusals(self, position: int) -> tuple[Sequence[Refusal], int]:
        """Return refusals from a position on, and the next position; 0 is the first one."""
        rows, end = self._read_rows(REFUSALS, position)
        return [refusal for part in rows for refusal in make_refusals(part)], end

    def read_notices(self, position: int) -> tuple[Sequence[Notice], int]:
        """Return notices from a position on, in order of publications, and the next position.

        `NoticesRemovedError` if the position was removed.
        """
        topic = self._topics[NOTICES]
        self._save(NOTICES, position)
        notices: list[Notice] = []
        try:
            for commit in self._commits(NOTICES, position):
                rows = pa.concat_batches(list(topic.read(commit.first, commit.end)))
                # a position counts the notices of a commit in order of publications
                notices += make_notices(rows)[max(0, position - commit.first) :]
                position = commit.end
        except TruncatedError as error:
            problem = f"notices before position {error.first} were removed"
            raise NoticesRemovedError(problem) from None
        return notices, position

    def find_notices(self, publication: int) -> int:
        """Return the position of the notices behind a publication, for `read_notices`.

        `NoticesRemovedError` if some of them may have been removed.
        """
        topic = self._topics[NOTICES]
        low, high = topic.first, topic.refresh()
        while low < high:  # the position is from low to high
            commit = topic.commits((low + high) // 2, (low + high) // 2 + 1)[0]
            numbers = self._read_publications(commit)
            if publication < numbers[0]:
                high = commit.first
            elif publication >= numbers[-1]:
                low = commit.end
            else:
                return commit.first + sum(number <= publication for number in numbers)
        if low == topic.first > 0 and publication + 1 < self._first_publication():
            problem = f"notices before publication {self._first_publication()} were removed"
            raise NoticesRemovedError(problem)
        return low

    def _first_publication(self) -> int:
        topic = self._topics[NOTICES]
        return self._read_publications(topic.commits(topic.first, topic.first + 1)[0])[0]

    def _read_publications(self, commit: Commit) -> list[int]:
        column = "publication"
        parts = self._topics[NOTICES].read(commit.first, commit.end, [column])
        return sorted(number for part in parts for number in part[column].to_pylist())

    def _read_rows(self, name: str, position: int) -> tuple[list[pa.RecordBatch], int]:
        self._save(name, position)
        commits = list(self._commits(name, position))
        end = commits[-1].end if commits else position
        return list(self._topics[name].read(position, end)), end

    def _commits(self, name: str, position: int) -> Iterator[Commit]:
        """Yield the next commits, up to the largest number of rows, but at least one."""
        topic, taken = self._topics[name], 0
        end = topic.refresh()
        while position < end and taken < _MAX_ROWS:
            (commit,) = topic.commits(position, position + 1)
            yield commit
            taken += commit.end - position
            position = commit.end

    def _register(self, name: str) -> int:
        """Keep what this broker has not read."""
        topic = self._topics[name]
        known = positions(topic.directory).get(_READER)
        if known is None:
            save_position(topic.directory, _READER, topic.first)
        return topic.first if known is None else known

    def _save(self, name: str, position: int) -> None:
        if position > self._read[name]:
            self._read[name] = position
            save_position(self._topics[name].directory, _READER, position)

    def __enter__(self) -> "TopicBroker":
        self._writer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)
