"""A broker in this process, without Spark: for tests, and to try a service.

Requests are a topic in a directory. Acks and notices are a function of the requests: they are kept
in memory only, and computed again from all requests at every start. So it forgets nothing, and
needs more time and memory with every request.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from penstock.pubsub.broker import Ack, Notice, NoticesRemovedError, Refusal, Request
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.local_operator import LocalOperator
from penstock.pubsub.operators.request_rows import make_request_rows
from penstock.pubsub.operators.result_rows import make_acks, make_notices, make_refusals
from penstock.pubsub.operators.topics import (
    ACKS,
    NOTICES,
    PARTIAL,
    PUBLICATIONS,
    REFUSALS,
    REQUESTS,
    SUBSCRIPTIONS,
)
from penstock.pubsub.pipeline import ACCESS, EXIT, MATCH, PubSubOptions, build_pipeline
from penstock.pubsub.spaces.space import Space
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import with_event

_WRITER = "broker"


class LocalBroker:
    """Calls the operators' functions for every commit of requests, one batch each."""

    def __init__(
        self,
        space: Space,
        directory: Path,
        *,
        max_notices: int | None = None,
        options: PubSubOptions | None = None,
    ) -> None:
        few = PubSubOptions(access_slices=1, match_slices=2, exit_slices=1, backend=Backend.NUMPY)
        pipeline = build_pipeline(space, options or few)
        self._space, self._max_notices = space, max_notices
        topics = pipeline.topics
        self._schemas = {name: t.schema for name, t in topics.items() if t.schema is not None}
        self._operators = {
            name: LocalOperator(operator, self._schemas)
            for name, operator in pipeline.operators.items()
        }
        self._acks: list[Ack] = []
        self._refusals: list[Refusal] = []
        self._notices: list[Notice] = []
        #: Notices that were removed, and the publication of the last one.
        self._removed, self._removed_up_to = 0, -1
        partition = topics[REQUESTS].partition
        topic = Topic.create(directory / REQUESTS, self._schemas[REQUESTS], partition=partition)
        self._writer = TopicWriter(topic, _WRITER)
        self._end = 0

    @property
    def space(self) -> Space:
        """The space that all requests belong to."""
        return self._space

    def submit(self, requests: Sequence[Request]) -> None:
        """Append requests, in this order; they survive a crash when this returns."""
        if requests:
            self._writer.append(make_request_rows(requests, self._writer.topic.end))
            self._advance()

    def read_acks(self, position: int) -> tuple[Sequence[Ack], int]:
        """Return acks from a position on, and the next position; 0 is the first one."""
        return self._acks[position:], len(self._acks)

    def read_refusals(self, position: int) -> tuple[Sequence[Refusal], int]:
        """Return refusals from a position on, and the next position; 0 is the first one."""
        return self._refusals[position:], len(self._refusals)

    def read_notices(self, position: int) -> tuple[Sequence[Notice], int]:
        """Return notices from a position on, in order of publications, and the next position.

        `NoticesRemovedError` if the position was removed.
        """
        if position < self._removed:
            raise NoticesRemovedError(f"notices before position {self._removed} were removed")
        return self._notices[position - self._removed :], self._removed + len(self._notices)

    def find_notices(self, publication: int) -> int:
        """Return the position of the notices behind a publication, for `read_notices`."""
        if publication < self._removed_up_to:
            raise NoticesRemovedError(f"notices up to {self._removed_up_to} were removed")
        behind = sum(notice.publication > publication for notice in self._notices)
        return self._removed + len(self._notices) - behind

    def _advance(self) -> None:
        """Process every commit that was not processed yet, also those of earlier starts."""
        topic = self._writer.topic
        for commit in topic.commits(self._end, topic.refresh()):
            self._process(pa.concat_batches(list(topic.read(commit.first, commit.end))))
            self._end = commit.end

    def _process(self, requests: pa.RecordBatch) -> None:
        rows = {REQUESTS: requests}
        rows |= self._operators[ACCESS].run(self._select(rows, REQUESTS))
        rows |= self._operators[MATCH].run(self._select(rows, SUBSCRIPTIONS, PUBLICATIONS))
        rows |= self._operators[EXIT].run(self._select(rows, PARTIAL))
        results = self._select(rows, ACKS, REFUSALS, NOTICES)
        self._acks += make_acks(results[ACKS])
        self._refusals += make_refusals(results[REFUSALS])
        self._notices += make_notices(results[NOTICES])
        self._trim()

    def _select(self, rows: dict[str, pa.RecordBatch], *topics: str) -> dict[str, pa.RecordBatch]:
        """Return the rows of topics; no rows for a topic that got none."""
        return {
            topic: rows[topic]
            if topic in rows
            else pa.RecordBatch.from_pylist([], with_event(self._schemas[topic]))
            for topic in topics
        }

    def _trim(self) -> None:
        if self._max_notices is None or len(self._notices) <= self._max_notices:
            return
        removed = self._notices[: len(self._notices) - self._max_notices]
        self._removed, self._removed_up_to = self._removed + len(removed), removed[-1].publication
        self._notices = self._notices[len(removed) :]

    def __enter__(self) -> "LocalBroker":
        self._writer.__enter__()
        self._advance()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)
