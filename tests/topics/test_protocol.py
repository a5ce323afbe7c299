"""Several processes' views of one topic, in any order of events, against a plain list."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.topics.factories import SCHEMA, ids, segment

from penstock.errors import TruncatedError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.readers import forget, positions, save_position
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.topic import Topic

VIEWS = st.integers(0, 2)
READERS = st.sampled_from(["a", "b"])


class OneTopic(RuleBasedStateMachine):
    """The model: all rows ever published, where each commit ends, what is the first row left."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)
        self.directory = Path(tempfile.mkdtemp()) / "topic"
        self.views = [Topic.create(self.directory, SCHEMA) for _ in range(3)]
        self.rows: list[int] = []
        self.ends: list[int] = []
        self.first = 0
        self.batches: dict[str, int] = {}
        self.readers: dict[str, int] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.directory.parent)
        self.patch.undo()

    @rule(
        view=VIEWS,
        writer=st.sampled_from(["v", "w"]),
        batch=st.integers(0, 8),
        sizes=st.lists(st.integers(1, 3), max_size=2),
    )
    def publish(self, view: int, writer: str, batch: int, sizes: list[int]) -> None:
        topic, first, segments = self.views[view], 1000 * len(self.ends), []
        for number, size in enumerate(sizes):
            segments.append(segment(topic, *range(first + 10 * number, first + 10 * number + size)))
        new = batch > self.batches.get(writer, -1)
        assert topic.publish(writer, batch, segments, at=0.0) == new
        if new and sizes:
            self.batches[writer] = batch
            self.rows += [first + 10 * n + i for n, size in enumerate(sizes) for i in range(size)]
            self.ends.append(len(self.rows))

    @rule(view=VIEWS)
    def refresh(self, view: int) -> None:
        assert self.views[view].refresh() == len(self.rows)

    @rule(view=VIEWS)
    def reopen(self, view: int) -> None:
        self.views[view] = Topic.open(self.directory)

    @rule(view=VIEWS, bounds=st.tuples(st.integers(0, 40), st.integers(0, 40)))
    def read(self, view: int, bounds: tuple[int, int]) -> None:
        start, end = sorted(min(bound, len(self.rows)) for bound in bounds)
        if start < self.first and start < end:
            with pytest.raises(TruncatedError) as raised:
                ids(self.views[view], start, end)
            assert (raised.value.offset, raised.value.first) == (start, self.first)
        else:
            assert ids(self.views[view], start, end) == self.rows[start:end]

    @rule(reader=READERS, offset=st.integers(0, 40))
    def advance(self, reader: str, offset: int) -> None:
        self.readers[reader] = min(offset, len(self.rows))
        save_position(self.directory, reader, self.readers[reader])

    @rule(reader=READERS)
    def leave(self, reader: str) -> None:
        self.readers.pop(reader, None)
        forget(self.directory, reader)

    @precondition(lambda self: self.ends)
    @rule(view=VIEWS)
    def trim(self, view: int) -> None:
        read = min(self.readers.values(), default=0)
        kept_from = max((end for end in self.ends[:-1] if end <= read), default=0)
        before = self.first
        self.first = max(before, kept_from)
        assert trim(self.views[view], now=0.0) == self.first - before

    @invariant()
    def all_that_is_known_elsewhere(self) -> None:
        assert positions(self.directory) == self.readers
        fresh = Topic.open(self.directory)
        assert (fresh.first, fresh.end) == (self.first, len(self.rows))
        assert {w: fresh.last_batch(w) for w in self.batches} == self.batches
        assert check(fresh) == []


TestOneTopic = pytest.mark.slow(OneTopic.TestCase)
TestOneTopic.settings = settings(max_examples=60, stateful_step_count=30)
