"""The cause is found in what Spark really printed; the texts were recorded from failing queries."""

from pathlib import Path

import pytest

from penstock.engines.spark.queries.causes import Cause, find_cause

TEXTS = Path(__file__).parent / "failure_texts"

#: By recorded text: the message, and whether it is the user's, a crash, of a network.
EXPECTED = {
    "connect-back": ("Python worker failed to connect back.", False, False, False),
    "egress-java": ("IOException: Mkdirs failed to create file:/proc/no/such", False, False, False),
    "egress-python": ("TypeError: the database is read-only", True, False, False),
    "ingest-file": (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
        " file:///home/me/run/files/a.parquet.",
        False,
        False,
        False,
    ),
    "ingest-python": (
        "ConnectionRefusedError: [Errno 111] the service refuses",
        True,
        False,
        True,
    ),
}


def recorded(name: str) -> Cause:
    return find_cause((TEXTS / f"{name}.txt").read_text())


def test_every_recorded_text_is_judged() -> None:
    assert {path.stem for path in TEXTS.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cause_is_the_cause(name: str) -> None:
    cause, (message, is_users, is_crash, is_network) = recorded(name), EXPECTED[name]
    assert cause.message == message
    assert (cause.is_users, cause.is_crash, cause.is_network) == (is_users, is_crash, is_network)


@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_of_the_machinery_is_shown(name: str) -> None:
    cause = recorded(name)
    assert "\n" not in cause.message
    for noise in ("RUNNABLE", "Streaming Query", "py4j", "/pyspark/", "\tat ", "org.apache"):
        assert noise not in cause.message + cause.traceback


@pytest.mark.parametrize("name", [name for name, told in EXPECTED.items() if told[1]])
def test_the_users_traceback_begins_and_ends_as_python_prints_it(name: str) -> None:
    lines = recorded(name).traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == recorded(name).message
    assert any(line.startswith('  File "/home/me/') for line in lines)


def test_two_failures_are_the_same_if_place_and_kind_are() -> None:
    text = (TEXTS / "egress-python.txt").read_text()
    other = text.replace("the database is read-only", "no connection after 17 s")
    assert find_cause(text).signature == find_cause(other).signature
    assert find_cause(text).signature != find_cause(text.replace("line 80", "line 81")).signature


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted due to stage failure: ... ExecutorLostFailure (executor 1 exited caused by"
        " one of the running tasks) Reason: Command exited with code 137",
        "java.lang.OutOfMemoryError: Java heap space",
        "Job aborted: Lost task 0.0 in stage 1.0 (TID 1) (host executor driver):"
        " java.net.SocketException: Connection reset\n\tat java.base/sun.nio.ch.X.y(X.java:1)",
    ],
)
def test_machines_and_processes_are_not_the_users(text: str) -> None:
    assert not find_cause(text).is_users


def test_rows_that_do_not_fit_are_the_users_though_only_our_code_found_it() -> None:
    text = (
        "Lost task 0.0 in stage 1.0 (TID 1) (host executor driver): PythonException:\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/penstock/pipelines/row_conversion.py", line 40, in fit_rows\n'
        "    raise InputError(name, problem)\n"
        "penstock.errors.InputError: clean.rows: column 'id' (long) is missing\n"
    )
    assert find_cause(text).is_users
    assert find_cause(text).message == "InputError: clean.rows: column 'id' (long) is missing"


@pytest.mark.parametrize("text", ["", "=== Streaming Query ===\nThread State: RUNNABLE"])
def test_nothing_is_nothing(text: str) -> None:
    assert find_cause(text).message == "no reason was given"
