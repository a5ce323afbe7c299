"""Resources are opened once in a process, and closed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.pipelines.factories import operator

from penstock.errors import InputError
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import close_all, opened, resource_of


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    yield
    close_all()


def using(resource: Any, name: str = "use") -> Operator:
    def function(batch: Any, resource: Any) -> Any:
        return batch

    function.__name__ = name
    return operator(function, resource=resource)


class Connection:
    """Writes down what happens to it."""

    def __init__(self, log: list[str], name: str = "") -> None:
        self.log, self.name = log, name
        log.append(f"open {name}")

    def close(self) -> None:
        self.log.append(f"close {self.name}")


def test_opened_once_for_each_operator_and_run() -> None:
    log: list[str] = []
    one, two = using(lambda: Connection(log)), using(lambda: Connection(log), "other")
    first = resource_of(one)
    assert resource_of(one) is first
    assert resource_of(two) is not first
    assert resource_of(one, run="another") is not first
    assert len(log) == 3


def test_closed_in_turn_and_opened_again_afterwards() -> None:
    log: list[str] = []
    one = using(lambda: Connection(log, "1"))
    resource_of(one)
    resource_of(using(lambda: Connection(log, "2"), "other"))
    close_all()
    close_all()
    assert log == ["open 1", "open 2", "close 2", "close 1"]
    resource_of(one)
    assert log[-1] == "open 1"


def test_one_that_cannot_be_closed_does_not_keep_others_open() -> None:
    class Stuck(Connection):
        def close(self) -> None:
            raise OSError("stuck")

    log: list[str] = []
    resource_of(using(lambda: Connection(log, "1")))
    resource_of(using(lambda: Stuck(log, "2"), "other"))
    with pytest.raises(OSError, match="stuck"):
        close_all()
    assert log[-1] == "close 1"
    close_all()


def test_context_managers_are_entered_and_left() -> None:
    log = []

    @contextmanager
    def session() -> Iterator[str]:
        log.append("enter")
        yield "session"
        log.append("exit")

    assert resource_of(using(session)) == "session"
    close_all()
    assert log == ["enter", "exit"]


def test_a_plain_object_needs_no_closing_and_none_is_none() -> None:
    assert resource_of(using(lambda: {"weights": 1})) == {"weights": 1}
    assert resource_of(using(None)) is None
    with opened(using(None)) as nothing:
        assert nothing is None


def test_one_that_cannot_be_opened_is_named_and_tried_again() -> None:
    tries = []

    def load() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise FileNotFoundError("model.bin")
        return "model"

    broken = using(load)
    with pytest.raises(InputError) as wrong:
        resource_of(broken)
    assert wrong.value.field == "use.resource"
    assert wrong.value.problem == "cannot be opened: FileNotFoundError: model.bin"
    assert resource_of(broken) == "model"
