"""`--verbose` and `--log-format`: quiet by default, and never on the root logger."""

import argparse
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.cli.main import build_parser, main
from penstock.cli.options import configure_logging
from penstock.runs.run_lock import SPARK_LOGGERS, quiet_spark_loggers

SIMULATION = ["simulate", "--minutes", "2", "--no-out", "--json"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Iterator[None]:
    yield
    configure_logging(argparse.Namespace(verbose=False, log_format=None))


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """All commands and verbs that can be run."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for inner in group.choices.values():
            yield from commands(inner)


def test_every_command_has_the_options() -> None:
    parsers = list(commands(build_parser()))
    assert len(parsers) > 20
    for parser in parsers:
        assert {"--verbose", "--log-format"} <= set(parser._option_string_actions), parser.prog


def test_without_options_nothing_is_logged(capsys: Capture) -> None:
    assert main(SIMULATION) == 0
    assert capsys.readouterr().err == ""


def test_log_lines_have_time_level_logger_and_message(capsys: Capture) -> None:
    assert main([*SIMULATION, "--verbose"]) == 0
    out, err = capsys.readouterr()
    first = err.splitlines()[0]
    time, level, logger, message = first.split(" ", 3)
    assert time.endswith("+00:00") and level == "INFO" and logger == "penstock.runs.simulated_run:"
    assert message == "simulation starts: q1 under cosine, ds2 on flink, seed 1066"
    assert json.loads(out)["spec"]["policy"] == "ds2"


def test_log_lines_as_json(capsys: Capture) -> None:
    assert main([*SIMULATION, "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines and all(set(line) == {"time", "level", "logger", "message"} for line in lines)


def test_a_traceback_is_part_of_the_json(capsys: Capture) -> None:
    configure_logging(argparse.Namespace(verbose=True, log_format="json"))
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("penstock.test").exception("failed")
    line = json.loads(capsys.readouterr().err)
    assert line["message"] == "failed" and "ValueError: broken" in line["traceback"]


def test_a_second_command_does_not_log_twice(capsys: Capture) -> None:
    for _ in range(2):
        assert main([*SIMULATION, "--verbose"]) == 0
    err = capsys.readouterr().err
    assert err.count("simulation starts") == 2
    assert main(SIMULATION) == 0
    assert capsys.readouterr().err == ""


SCRIPT = """
import logging
from py4j import java_gateway
import penstock
from penstock.runs.run_lock import quiet_spark_loggers
root = logging.getLogger()
before = (root.level, list(root.handlers), logging.raiseExceptions)
quiet_spark_loggers()
quiet_spark_loggers()
java_gateway.logging.exception("Exception while sending command.")
logging.getLogger("py4j.clientserver").error("lost")
logging.getLogger("pyspark.sql").error("lost")
logging.getLogger("penstock.runs").error("lost")
assert (root.level, list(root.handlers), logging.raiseExceptions) == before
"""


def test_the_root_logger_of_a_program_is_untouched_and_shutdown_errors_are_silent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_handler_of_the_program_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    quiet_spark_loggers()
    assert all(logging.getLogger(name).handlers for name in SPARK_LOGGERS)
    logging.getLogger("py4j.java_gateway").error("lost")
    assert "lost" in caplog.text  # a program that configures logging still sees it
