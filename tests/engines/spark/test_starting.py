"""Queries begin a few at a time; one that died is started again, but not for ever."""

from typing import Any

import pytest

from penstock.engines.spark import starting
from penstock.engines.spark.starting import MOST_TRIES, Starter


class Query:
    """Begins until it is asked so many times."""

    isActive = True  # noqa: N815  (Spark's name)

    def __init__(self, looks: int) -> None:
        self._looks = looks

    @property
    def status(self) -> dict[str, Any]:
        self._looks -= 1
        return {"message": "Initializing sources" if self._looks >= 0 else "Waiting for data"}


class Writer:
    def __init__(self, name: str, started: list[str], looks: int = 0) -> None:
        self._name, self._started, self._looks = name, started, looks

    def start(self) -> Query:
        self._started.append(self._name)
        return Query(self._looks)


def made(*names: str, looks: int = 0) -> tuple[Starter, list[str]]:
    starter, started = Starter(), list[str]()
    for name in names:
        starter.add(name, Writer(name, started, looks))  # type: ignore[arg-type]
    return starter, started


def test_the_last_operator_starts_first() -> None:
    starter, started = made("a", "b", "c")
    starter.start()
    assert started == ["c", "b", "a"]
    assert list(starter.queries) == ["c", "b", "a"]


def test_only_so_many_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MOST_BEGINNING", 2)
    starter, started = made("a", "b", "c", looks=3)
    seen = []
    monkeypatch.setattr(starting.time, "sleep", lambda _: seen.append(len(started)))
    starter.start()
    assert started == ["c", "b", "a"]
    assert seen
    assert set(seen) == {2}


def test_the_same_batch_is_tried_so_often() -> None:
    starter, started = made("a")
    starter.start()
    for number in range(MOST_TRIES):
        assert starter.may_help("a", 7)
        starter.start_again("a", 7)
        assert starter.tries("a", 7) == number + 1
    assert not starter.may_help("a", 7)
    assert len(started) == 1 + MOST_TRIES


def test_a_batch_that_went_well_makes_up_for_it() -> None:
    starter, _ = made("a")
    for _ in range(MOST_TRIES):
        starter.start_again("a", 7)
    assert starter.may_help("a", 8)
    starter.start_again("a", 8)
    assert starter.tries("a", 8) == 1


def test_nothing_is_started_again_after_the_end() -> None:
    starter, _ = made("a")
    starter.start()
    starter.close()
    assert not starter.may_help("a", 0)
    assert list(starter.queries) == ["a"]
