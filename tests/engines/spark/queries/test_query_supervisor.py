"""Queries begin a few at a time; one that stopped is started again for as long as is allowed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from penstock.engines.events import Event, FailedEvent, RestartingEvent, kind_of
from penstock.engines.spark.io.call_marker import CallMark
from penstock.engines.spark.queries import query_supervisor
from penstock.engines.spark.queries.failures import Failure, save
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.queries.retries import Rows
from penstock.engines.spark.run_layout import RunLayout
from penstock.reports.event_text import describe_event

DIED = (
    "Python worker exited unexpectedly (crashed)\n=== Streaming Query ===\nThread State: RUNNABLE"
)
NO_WORKER = "Python worker failed to connect back.\n=== Streaming Query ===\nThread State: RUNNABLE"
RAISED = """Job aborted: Lost task 0.2 in stage 0.0 (TID 2) (host executor driver): PythonException:
Traceback (most recent call last):
  File "/home/me/mine.py", line 7, in enrich
    raise ValueError("seven")
ValueError: seven
\tat org.apache.spark.Thing.run(Thing.scala:1)
"""


class Query:
    """Begins until it is asked so many times; dead from the start if there is a reason."""

    def __init__(self, looks: int, reason: str) -> None:
        self._looks, self._reason = looks, reason

    @property
    def isActive(self) -> bool:  # noqa: N802  (Spark's name)
        return not self._reason

    @property
    def status(self) -> dict[str, Any]:
        self._looks -= 1
        return {"message": "Initializing sources" if self._looks >= 0 else "Waiting for data"}

    def exception(self) -> str | None:
        return self._reason or None


@dataclass
class Made:
    """A starter whose queries stop for one reason, and its clock."""

    starter: QuerySupervisor
    started: list[str] = field(default_factory=list)
    now: float = 0.0
    batch: int = 7
    rows: Rows = (("in", 100, 120),)
    said: list[str] = field(default_factory=list)

    def look(self) -> list[Event]:
        return self.starter.watch(lambda _: (self.batch, self.rows))

    def kinds(self) -> list[str]:
        return [kind_of(event) for event in self.look()]

    def later(self, seconds: float) -> list[Event]:
        self.now += seconds
        return self.look()


@pytest.fixture
def make(layout: RunLayout) -> Callable[..., Made]:
    def make(
        *names: str, looks: int = 0, reason: str = "", retry_for_s: float = inf, **known: Any
    ) -> Made:
        made = Made(QuerySupervisor(layout))
        made.starter = QuerySupervisor(
            layout, retry_for_s, say=made.said.append, clock=lambda: made.now
        )

        def begin(name: str) -> Callable[[], Query]:
            def start() -> Query:
                made.started.append(name)
                return Query(looks, reason)

            return start

        for name in names:
            made.starter.add(name, begin(name), **known)  # type: ignore[arg-type]
        return made

    return make


def mark(layout: RunLayout, operator: str, deaths: int) -> None:
    """Leave what a task leaves whose process died in a call."""
    directory = layout.marks(operator)
    directory.mkdir(parents=True, exist_ok=True)
    left = CallMark(topic="in", first=3, end=9, began_at=0.0, deaths=deaths)
    data = {name: getattr(left, name) for name in left.__slots__}
    (directory / "0.json").write_text(json.dumps(data))


def test_the_last_operator_starts_first(make: Callable[..., Made]) -> None:
    made = make("a", "b", "c")
    made.starter.start()
    assert made.started == ["c", "b", "a"]
    assert list(made.starter.queries) == ["c", "b", "a"]


def test_only_so_many_begin_at_once_and_who_is_waited_for_is_said(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_supervisor, "MAX_STARTING", 2)
    made = make("a", "b", "c", looks=9)
    seen = []

    def sleep(_: float) -> None:
        seen.append(len(made.started))
        made.now += query_supervisor.SAY_EVERY_S + 1

    monkeypatch.setattr(query_supervisor.time, "sleep", sleep)
    made.starter.start()
    assert made.started == ["c", "b", "a"]
    assert set(seen) == {2}
    assert made.said[0] == "waiting for 2 operators to start: c, b (16 s)"


def test_what_is_not_the_users_fault_is_retried_for_ever_with_back_off(
    make: Callable[..., Made],
) -> None:
    made = make("a", reason=NO_WORKER)
    made.starter.start()
    restarts = []
    for second in range(3600):
        made.now = float(second)
        restarts += [(second, event) for event in made.look() if isinstance(event, RestartingEvent)]
    seconds = [second for second, _ in restarts]
    gaps = [b - a for a, b in pairwise(seconds)]
    assert gaps == sorted(gaps)
    # one second more than the delay: it stops at once, which is seen at the next look
    assert (gaps[:6], gaps[-1]) == ([1, 2, 3, 5, 9, 17], 61)
    assert [event.tries for _, event in restarts] == list(range(1, len(restarts) + 1))
    assert len(restarts) > 50
    assert not made.starter.failed
    assert restarts[-1][1].error == "Python worker failed to connect back."


def test_after_the_time_that_the_user_allows_it_is_given_up(make: Callable[..., Made]) -> None:
    made = make("a", reason=NO_WORKER, retry_for_s=60)
    made.starter.start()
    events = [event for _ in range(120) for event in made.later(1.0)]
    (failed,) = [event for event in events if isinstance(event, FailedEvent)]
    assert failed.is_users is False
    assert (failed.tries or 0) >= 6
    text = made.starter.failed["a"]
    assert text.startswith("a was given up after")
    assert "Python worker failed to connect back." in text
    assert "RUNNABLE" not in text
    assert made.starter.is_over


def test_a_batch_that_went_well_makes_up_for_it(make: Callable[..., Made]) -> None:
    made = make("a", reason=NO_WORKER, retry_for_s=60)
    made.starter.start()
    for batch in range(40):
        made.batch = batch
        events = made.later(30.0)
        assert [kind_of(event) for event in events] == ["restarting"]
        assert isinstance(events[0], RestartingEvent) and events[0].tries == 1


def test_the_same_exception_on_the_same_rows_twice_is_the_users(make: Callable[..., Made]) -> None:
    made = make("a", reason=RAISED)
    made.starter.start()
    assert made.kinds() == ["restarting"]
    (failed,) = made.later(5.0)
    assert isinstance(failed, FailedEvent)
    assert failed.is_users is True
    assert (failed.topic, failed.first_offset) == ("in", 100)
    text = made.starter.failed["a"]
    assert text.startswith("a failed on rows 100 to 119 of topic in:\nTraceback")
    assert text.endswith("ValueError: seven")
    assert made.later(5.0) == []  # it is told once


def test_the_same_exception_on_other_rows_is_tried_again(make: Callable[..., Made]) -> None:
    made = make("a", reason=RAISED)
    made.starter.start()
    made.look()
    made.rows = (("in", 120, 140),)
    assert "failed" not in [kind_of(event) for event in made.later(5.0)]


def test_an_ingest_waits_for_a_network_that_is_away(make: Callable[..., Made]) -> None:
    made = make("a", reason=RAISED.replace("ValueError", "ConnectionRefusedError"))
    made.rows = ()
    made.starter.start()
    kinds = {kind_of(event) for _ in range(100) for event in made.later(10.0)}
    assert kinds == {"restarting"}


def test_a_failure_of_an_ingest_names_no_rows(make: Callable[..., Made]) -> None:
    made = make("files", reason=RAISED)
    made.rows = ()
    made.starter.start()
    made.look()
    (failed,) = made.later(5.0)
    assert isinstance(failed, FailedEvent) and failed.topic is None
    assert made.starter.failed["files"].startswith("files failed:\nTraceback")
    assert describe_event(failed) == "files failed: ValueError: seven"


def test_a_function_that_raised_twice_is_not_tried_again(
    make: Callable[..., Made], layout: RunLayout
) -> None:
    made = make("a", "b", reason=NO_WORKER)
    made.starter.start()
    for request in (1, 2):  # messages may differ: the place and the kind are the same
        trace = f'  File "mine.py", line 3, in a\nValueError: no {request}'
        save(layout, "a", Failure(topic="in", first=3, end=4, trace=trace))
    assert sorted(made.kinds()) == ["failed", "restarting"]
    assert made.starter.failed["a"].startswith("a failed on row 3 of topic in:\n")
    assert made.started == ["b", "a", "b"]


def test_a_function_that_raised_once_is_tried_again(
    make: Callable[..., Made], layout: RunLayout
) -> None:
    made = make("a", reason=RAISED)
    made.starter.start()
    save(layout, "a", Failure(topic="in", first=3, end=4, trace="ValueError: no"))
    assert made.kinds() == ["restarting"]


@pytest.mark.parametrize(
    ("deaths", "known", "expected"),
    [
        pytest.param(0, {}, "", id="died once"),
        pytest.param(1, {}, "worker process died while processing rows 3 to 8", id="twice"),
        pytest.param(1, {"keeps_letters": True}, "", id="the rows will be put aside"),
    ],
)
def test_a_worker_that_dies_on_the_same_rows(
    make: Callable[..., Made], layout: RunLayout, deaths: int, known: dict[str, bool], expected: str
) -> None:
    made = make("a", reason=DIED, **known)
    made.starter.start()
    mark(layout, "a", deaths)
    assert ("failed" in made.kinds()) == bool(expected)
    assert expected in made.starter.failed.get("a", "")


def test_a_call_that_took_too_long_is_told_with_its_stack(
    make: Callable[..., Made], layout: RunLayout
) -> None:
    made = make("a", reason=DIED, call_timeout_s=5.0)
    made.starter.start()
    mark(layout, "a", 1)
    stack = 'Timeout (0:00:05)!\nThread 0x1:\n  File "mine.py", line 9 in wait'
    (layout.marks("a") / "0.stack").write_text(stack)
    made.look()
    text = made.starter.failed["a"]
    assert "call of a took longer than 5 s on rows 3 to 8 of topic in" in text
    assert 'File "mine.py", line 9 in wait' in text


def test_a_restart_that_is_refused_counts_as_another_failure(make: Callable[..., Made]) -> None:
    made = make("a", reason=NO_WORKER)
    made.starter.start()

    def refuse() -> Query:
        raise PySparkRuntimeError("another query with same id is already active")

    made.starter.add("a", refuse)  # type: ignore[arg-type]
    kinds = [kind_of(event) for event in made.look()]
    assert kinds == ["restarting", "restarting"]
    assert "a" in made.starter.restarting


def test_nothing_is_started_again_after_the_end(make: Callable[..., Made]) -> None:
    made = make("a", reason=NO_WORKER)
    made.starter.start()
    made.starter.close()
    assert made.kinds() == ["failed"]
