"""A producer writes exactly what is due, in every run of time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, TopicError
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import MAX_ROWS, Producer
from penstock.topics.schema import EVENT, parse_schema
from penstock.workloads.arrivals import arrivals
from penstock.workloads.workload import Workload

SCHEMA = parse_schema("id long")
START = 1_000_000.0
LOAD = Workload.of_points([0, 4, 4, 9], [0, 37, 11.5, 11.5])


class Clock:
    """Time goes by when somebody sleeps, and by as much as told in between."""

    def __init__(self, now: float = START) -> None:
        self.now = now
        self.before_sleep: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 0.05
        self.before_sleep()
        self.now += seconds


def numbers(first_id: int, due: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array(range(first_id, first_id + len(due)), pa.int64())})


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic.create(tmp_path / "numbers", SCHEMA)


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., Producer]


@pytest.fixture
def producer(topic: Topic, clock: Clock) -> Iterator[Make]:
    """Make producers for the topic."""
    with TopicWriter(topic, "producer", clock) as writer:

        def make(load: Workload = LOAD, make: Any = numbers, **more: Any) -> Producer:
            return Producer(writer, make, load, clock=clock, sleep=clock.sleep, **more)

        yield make


def rows(topic: Topic) -> pa.Table:
    return pa.Table.from_batches(topic.read(0, topic.refresh()), topic.schema)


def events_s(topic: Topic) -> list[float]:
    """Stamps in seconds after the start, to the microsecond."""
    stamps = rows(topic).column(EVENT).cast(pa.int64()).to_pylist()
    return [(stamp - START * 1e6) / 1e6 for stamp in stamps]


def test_at_every_moment_exactly_what_is_due(topic: Topic, producer: Make, clock: Clock) -> None:
    seen = []

    def look() -> None:
        seen.append(clock.now)
        assert topic.refresh() == LOAD.count(0, clock.now - START)

    clock.before_sleep = look
    made = producer()
    made.run()
    assert len(seen) >= 9 / 0.05 - 1
    assert topic.refresh() == made.produced == LOAD.total_records
    assert rows(topic).column("id").to_pylist() == list(range(LOAD.total_records))


@pytest.mark.parametrize("second", range(1, 11))
def test_by_every_second_exactly_the_count(topic: Topic, producer: Make, second: int) -> None:
    producer(step_s=0.03).run(until=second)
    assert topic.refresh() == LOAD.count(0, second)


@pytest.mark.parametrize("kind", ["deterministic", "poisson", "bursty"])
def test_stamps_are_when_rows_were_due_and_no_row_is_early(
    topic: Topic, producer: Make, kind: Any
) -> None:
    producer(arrivals=kind, seed=3).run()
    expected = [t for part in arrivals(kind, LOAD, seed=3) for t in part.tolist()]
    stamps = events_s(topic)
    assert stamps == pytest.approx(expected, abs=2e-6)
    for commit in topic.oldest_first():
        due = stamps[commit.first : commit.end]
        assert max(due) <= commit.at - START <= max(due) + 0.05 + 1e-6


def test_after_a_stall_everything_is_written_at_once(
    topic: Topic, producer: Make, clock: Clock
) -> None:
    load = Workload.of_steps([100_000], 3)
    stalls = iter([2.0])

    def stall() -> None:
        if clock.now > START + 0.5:
            clock.now += next(stalls, 0.0)

    clock.before_sleep = stall
    made = producer(load)
    made.run()
    sizes = {}
    for commit in topic.oldest_first():
        sizes.setdefault(commit.at, []).append(commit.rows)
    late = max(sizes, key=lambda at: sum(sizes[at]))
    assert sum(sizes[late]) == pytest.approx(205_000, abs=2)
    assert sizes[late][:3] == [MAX_ROWS] * 3
    assert made.worst_lag_s == pytest.approx(2.05, abs=0.001) and made.lag_s < 0.06
    assert topic.refresh() == load.total_records


@pytest.mark.parametrize("kind", ["deterministic", "poisson", "bursty"])
def test_going_on_with_the_next_row_which_is_due_now(
    topic: Topic, producer: Make, clock: Clock, kind: Any
) -> None:
    producer(arrivals=kind, seed=3).run(until=4.0)
    held = topic.refresh()
    clock.now += 1000.0
    begun = clock.now
    producer(arrivals=kind, seed=3).run()
    expected = [t for part in arrivals(kind, LOAD, seed=3) for t in part.tolist()]
    assert rows(topic).column("id").to_pylist() == list(range(len(expected)))
    shifted = [t - expected[held] + begun - START for t in expected[held:]]
    assert events_s(topic)[held:] == pytest.approx(shifted, abs=2e-6)


def test_one_producer_can_be_run_again(topic: Topic, producer: Make) -> None:
    made = producer()
    made.run(until=3.0)
    made.run(until=6.0)
    assert made.produced == topic.refresh() == LOAD.count(0, 6.0)
    producer().run()
    producer().run()
    assert topic.refresh() == LOAD.total_records


def test_a_workload_that_began_earlier_is_caught_up_with(
    topic: Topic, producer: Make, clock: Clock
) -> None:
    clock.before_sleep = lambda: pytest.fail("everything is due")
    made = producer()
    made.run(begin_at=START - LOAD.duration_s)
    assert made.produced == LOAD.total_records
    last_s = LOAD.when(np.array([LOAD.total_records]))[0] - LOAD.duration_s
    assert max(events_s(topic)) == pytest.approx(last_s, abs=2e-6)


def test_it_stops_when_it_is_told_to(topic: Topic, producer: Make, clock: Clock) -> None:
    stop = threading.Event()
    clock.before_sleep = lambda: stop.set() if clock.now >= START + 2 else None
    made = producer()
    made.run(stop=stop)
    assert topic.refresh() == LOAD.count(0, clock.now - 0.05 - START) < LOAD.total_records
    made.run(stop=stop)
    assert topic.refresh() == made.produced


def test_it_stops_between_two_commits_of_a_long_stall(topic: Topic, producer: Make) -> None:
    stop = threading.Event()
    made = producer(Workload.of_steps([1e6], 1))
    made.run(stop=stop, begin_at=START - 1, watch=lambda _: stop.set())
    assert made.produced == MAX_ROWS


def test_who_watches_sees_every_commit(topic: Topic, producer: Make) -> None:
    seen: list[int] = []
    producer().run(watch=lambda made: seen.append(made.produced))
    ends = [commit.end for commit in topic.oldest_first()]
    assert seen == ends


def test_make_gets_the_number_and_the_times(topic: Topic, producer: Make) -> None:
    given_: list[tuple[int, list[Any]]] = []

    def make(first_id: int, due: pa.Array) -> pa.Table:
        given_.append((first_id, due.cast(pa.int64()).to_pylist()))
        return numbers(first_id, due)

    producer(make=make).run()
    assert [first for first, _ in given_] == [commit.first for commit in topic.oldest_first()]
    stamps = rows(topic).column(EVENT).cast(pa.int64()).to_pylist()
    assert [due for _, part in given_ for due in part] == stamps


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda first, due: numbers(first, due).slice(1), "one for each record that is due"),
        (lambda *_: {"id": [1]}, "must be a pa.Table, got dict"),
        (lambda _, due: pa.table({EVENT: due, "id": range(len(due))}), "have a column '_event'"),
        (lambda _, due: pa.table({"id": ["a"] * len(due)}), "expected long, found string"),
    ],
)
def test_rows_that_do_not_fit_stop_it_and_nothing_is_written(
    topic: Topic, producer: Make, make: Any, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        producer(make=make).run()
    assert topic.refresh() == 0


@given(
    st.lists(st.floats(0, 500), min_size=1, max_size=4),
    st.floats(0.01, 0.05),
    st.lists(st.floats(0, 2), max_size=5),
)
def test_no_stall_loses_or_doubles_a_row(
    rates: list[float], step_s: float, stalls: list[float]
) -> None:
    load, clock, left = Workload.of_steps(rates, 1.0), Clock(), list(stalls)
    written: list[int] = []

    class Memory:
        """A writer that keeps the ids, so that many runs take no time."""

        class topic:  # noqa: N801
            end = 0

            @classmethod
            def refresh(cls) -> int:
                return len(written)

        def append(self, table: pa.Table) -> int:
            due = table.column(EVENT).cast(pa.int64()).to_pylist()
            assert all(stamp <= clock.now * 1e6 for stamp in due)
            written.extend(table.column("id").to_pylist())
            return len(written)

    def stall() -> None:
        assert len(written) == load.count(0, clock.now - START)
        clock.now += left.pop() if left else 0.0

    clock.before_sleep = stall
    writer: Any = Memory()
    Producer(writer, numbers, load, clock=clock, sleep=clock.sleep, step_s=step_s).run()
    assert written == list(range(load.total_records))


KILLED = """
import sys
from pathlib import Path
from tests.topics.test_producer import SCHEMA, numbers
from penstock.topics.producer import Producer
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.workloads.workload import Workload
with TopicWriter(Topic.create(Path(sys.argv[1]), SCHEMA), "producer") as writer:
    Producer(writer, numbers, Workload.of_steps([3000], 600), step_s=0.002).run()
"""


@pytest.mark.slow
def test_a_killed_producer_goes_on_without_a_gap(tmp_path: Path) -> None:
    place, root = tmp_path / "numbers", Path(__file__).parents[2]
    ends = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(place)], cwd=root)
        patience_s = time.monotonic() + 20
        grown = 0
        while grown < 500 and time.monotonic() < patience_s:
            time.sleep(0.05)
            if (place / "topic.json").exists():
                grown = Topic.open(place).end - (ends[-1] if ends else 0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        ends.append(Topic.open(place).end)
    assert len(set(ends)) == 3
    topic = Topic.open(place)
    assert rows(topic).column("id").to_pylist() == list(range(ends[-1]))


def test_two_producers_cannot_fill_one_topic(topic: Topic) -> None:
    with TopicWriter(topic, "producer"), pytest.raises(TopicError), TopicWriter(topic, "other"):
        pass
