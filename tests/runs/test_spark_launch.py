"""A call beside the caller gives its result, or its error, when it is asked."""

import threading

import pytest

from penstock.errors import InputError
from penstock.runs.spark_launch import BackgroundCall


def test_it_runs_beside_the_caller_and_gives_its_result() -> None:
    may_end = threading.Event()
    call = BackgroundCall(lambda: may_end.wait(10) and 42)
    call.start()
    may_end.set()  # not reached in time by a call that is waited for
    assert call.result() == 42


def test_its_error_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> int:
        raise InputError("model", "cannot be loaded")

    call = BackgroundCall(fail)
    with pytest.raises(InputError, match="cannot be loaded"):
        call.result()
