"""How a policy is asked: directly, or only for so long.

A policy is pure code and a simulator waits for it. A pipeline that really runs does not: what
has not answered in time is left behind in its thread, and the loop goes on without an answer.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Ask(Protocol):
    """Gets a question that has no arguments left, and returns its answer or raises."""

    def __call__(self, question: Callable[[], T], /) -> T:
        """Ask it."""
        ...


def directly(question: Callable[[], T], /) -> T:
    """Ask and wait."""
    return question()


def ask_within(seconds: float) -> Ask:
    """Return a way to ask that gives up after so many seconds with `TimeoutError`.

    A thread cannot be stopped from outside. So a question that is still being worked on is
    the only one: until it is done every other is turned away, and threads do not pile up.
    """
    last: Future[Any] | None = None

    def ask(question: Callable[[], T], /) -> T:
        nonlocal last
        if last is not None and not last.done():
            raise TimeoutError("still at work on an earlier question")
        answer: Future[T] = Future()
        last = answer
        Thread(target=_work, args=(question, answer), name="policy", daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError:
            if answer.done():
                raise
            raise TimeoutError(f"no answer within {seconds:g} s") from None

    return ask


def _work(question: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(question())
    except Exception as error:
        answer.set_exception(error)
    except BaseException as error:  # such as sys.exit(): it must not end the loop either
        answer.set_exception(RuntimeError(f"ended by {type(error).__name__}"))
