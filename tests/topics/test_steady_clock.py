"""Whoever sets the wall clock back stops nothing."""

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.topics.schema import parse_schema
from penstock.topics.steady_clock import SteadyClock
from penstock.workloads.workload import Workload


class Clocks:
    """A machine whose wall clock can be set."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = 1.7e9, 50.0

    def pass_time(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def steady(clocks: Clocks) -> SteadyClock:
    return SteadyClock(lambda: clocks.wall_s, lambda: clocks.monotonic_s)


def test_it_goes_on_when_the_wall_clock_is_set(clocks: Clocks, steady: SteadyClock) -> None:
    assert steady() == 1.7e9
    clocks.pass_time(10)
    clocks.wall_s -= 3600
    clocks.pass_time(5)
    assert steady() == 1.7e9 + 15
    assert steady.shift_s == 3600
    assert clocks.wall_s + steady.shift_s == steady()


def test_a_wall_clock_that_is_corrected_by_little_was_not_set(
    clocks: Clocks, steady: SteadyClock
) -> None:
    clocks.pass_time(100)
    clocks.wall_s -= 0.9
    assert steady.shift_s == 0


def test_a_producer_goes_on_when_the_wall_clock_is_set_back(tmp_path: Path, clocks: Clocks) -> None:
    sleeps = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clocks.pass_time(seconds)
        if len(sleeps) == 20:
            clocks.wall_s -= 3600
        assert len(sleeps) < 1000, "it waits for the hour to pass"

    topic = Topic.create(tmp_path / "in", parse_schema("id long"))
    with TopicWriter(topic, "test") as writer:
        producer = Producer(
            writer,
            lambda first, due: pa.table({"id": range(first, first + len(due))}),
            Workload.of_steps([10.0, 10.0], step_s=5.0),
            clock=SteadyClock(lambda: clocks.wall_s, lambda: clocks.monotonic_s),
            sleep=sleep,
        )
        producer.run()
    assert topic.refresh() == 100
    (events,) = [pa.concat_arrays([b["_event"] for b in topic.read(0, 100)]).cast("int64")]
    stamps = events.to_pylist()
    assert stamps == sorted(stamps)


def test_a_producer_that_is_given_no_clock_goes_on_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, back_s, sleeps = time.time, [0.0], []
    monkeypatch.setattr(time, "time", lambda: wall() - back_s[0])

    def sleep(seconds: float) -> None:
        back_s[0] = 3600.0
        sleeps.append(seconds)
        assert len(sleeps) < 1000, "it waits for the hour to pass"
        threading.Event().wait(seconds)

    topic = Topic.create(tmp_path / "in", parse_schema("id long"))
    with TopicWriter(topic, "test") as writer:
        Producer(
            writer,
            lambda first, due: pa.table({"id": range(first, first + len(due))}),
            Workload.of_steps([100.0], step_s=0.2),
            sleep=sleep,
            step_s=0.01,
        ).run()
    assert topic.refresh() == 20
