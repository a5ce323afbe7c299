"""Queries begin a few at a time; one that died is started again, but not for ever."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.engines.spark import starting
from penstock.engines.spark.failures import Failure, tell
from penstock.engines.spark.places import Places
from penstock.engines.spark.starting import MOST_TRIES, Starter

Made = Callable[..., tuple[Starter, list[str]]]


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


class Writer:
    def __init__(self, name: str, started: list[str], looks: int, reason: str) -> None:
        self._name, self._started, self._looks, self._reason = name, started, looks, reason

    def start(self) -> Query:
        self._started.append(self._name)
        return Query(self._looks, self._reason)


@pytest.fixture
def made(places: Places) -> Made:
    def make(*names: str, looks: int = 0, reason: str = "") -> tuple[Starter, list[str]]:
        starter, started = Starter(places), list[str]()
        for name in names:
            starter.add(name, Writer(name, started, looks, reason).start)  # type: ignore[arg-type]
        return starter, started

    return make


def kinds(starter: Starter, batch: int) -> list[str]:
    return [event.kind for event in starter.watch(lambda _: batch)]


def test_the_last_operator_starts_first(made: Made) -> None:
    starter, started = made("a", "b", "c")
    starter.start()
    assert started == ["c", "b", "a"]
    assert list(starter.queries) == ["c", "b", "a"]


def test_only_so_many_begin_at_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MOST_BEGINNING", 2)
    starter, started = made("a", "b", "c", looks=3)
    seen = []
    monkeypatch.setattr(starting.time, "sleep", lambda _: seen.append(len(started)))
    starter.start()
    assert started == ["c", "b", "a"]
    assert seen
    assert set(seen) == {2}


def test_the_same_batch_is_tried_so_often(made: Made) -> None:
    starter, started = made("a", reason="a process died\nat java.lang.Thread")
    starter.start()
    for number in range(MOST_TRIES):
        (event,) = starter.watch(lambda _: 7)
        assert event.kind == "revived"
        assert event.numbers == {"tries": number + 1, "error": "a process died"}
    assert kinds(starter, 7) == ["failed"]
    assert starter.failed == {"a": "a process died\nat java.lang.Thread"}
    assert starter.is_over
    assert kinds(starter, 7) == []  # it is told once
    assert len(started) == 1 + MOST_TRIES


def test_a_batch_that_went_well_makes_up_for_it(made: Made) -> None:
    starter, _ = made("a", reason="died")
    starter.start()
    for _ in range(MOST_TRIES):
        kinds(starter, 7)
    assert kinds(starter, 8) == ["revived"]
    assert starter.tries("a", 8) == 1


def test_a_function_that_raised_is_not_tried_again(made: Made, places: Places) -> None:
    starter, started = made("a", "b", reason="died")
    starter.start()
    tell(places, "a", Failure(topic="in", first=3, end=4, trace="ValueError: no"))
    assert sorted(kinds(starter, 0)) == ["failed", "revived"]
    assert starter.failed == {"a": "a failed on row 3 of topic in:\nValueError: no"}
    assert started == ["b", "a", "b"]


def test_nothing_is_started_again_after_the_end(made: Made) -> None:
    starter, _ = made("a", reason="died")
    starter.start()
    starter.close()
    assert kinds(starter, 0) == ["failed"]
