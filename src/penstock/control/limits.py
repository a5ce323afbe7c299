"""Calls of a policy: directly, or with a time limit.

A simulator waits for its policy. A running pipeline does not: a call that exceeds the limit is
abandoned in its thread, and the loop continues without an answer.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Caller(Protocol):
    """Calls a function without arguments, and returns its result or raises."""

    def __call__(self, question: Callable[[], T], /) -> T:
        """Call it."""
        ...


def call_directly(question: Callable[[], T], /) -> T:
    """Call and wait."""
    return question()


def call_within(seconds: float) -> Caller:
    """Return a caller that raises `TimeoutError` after so many seconds.

    A thread cannot be stopped from outside. While an abandoned call still runs, every new call
    is refused, so that threads do not pile up.
    """
    last: Future[Any] | None = None

    def call(question: Callable[[], T], /) -> T:
        nonlocal last
        if last is not None and not last.done():
            raise TimeoutError("an earlier call is still running")
        answer: Future[T] = Future()
        last = answer
        Thread(target=_work, args=(question, answer), name="policy", daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError:
            if answer.done():
                raise
            raise TimeoutError(f"no answer within {seconds:g} s") from None

    return call


def _work(question: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(question())
    except Exception as error:
        answer.set_exception(error)
    except BaseException as error:  # such as sys.exit(): it must not end the loop either
        answer.set_exception(RuntimeError(f"ended by {type(error).__name__}"))
