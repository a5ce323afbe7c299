"""`penstock attach` runs a program as Python does, whether or not it uses Spark."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_attachment import RemoteQuery, RemoteSession

from penstock.api.attached_program import SessionFollower
from penstock.cli.main import main


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "app.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("pass", 0, id="to its end"),
        pytest.param("import sys; sys.exit(3)", 3, id="its own exit code"),
        pytest.param("raise SystemExit('no data')", 1, id="a message"),
        pytest.param("1 / 0", 1, id="an error"),
    ],
)
def test_the_exit_code_is_that_of_the_program(text, code, tmp_path):
    assert main(["attach", "--freshness", "30 s", write(tmp_path, text)]) == code


def test_an_error_of_the_program_is_shown_as_python_shows_it(tmp_path, capsys):
    main(["attach", "--freshness", "30 s", write(tmp_path, "1 / 0")])
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_program_gets_its_arguments_and_its_directory(tmp_path, capsys):
    (tmp_path / "helper.py").write_text("NAME = 'helper'")
    program = write(tmp_path, "import sys, helper; print(__name__, sys.argv[1:], helper.NAME)")
    before = list(sys.argv), list(sys.path)
    assert main(["attach", "--freshness", "30 s", program, "--", "--rate", "5"]) == 0
    assert "__main__ ['--rate', '5'] helper" in capsys.readouterr().out
    assert (sys.argv, sys.path) == before
    del sys.modules["helper"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--freshness", "soon"], id="no time"),
        pytest.param(["--freshness", "30 s", "--executors", "8"], id="one number"),
        pytest.param(["--freshness", "30 s", "--executors", "8:1"], id="fewest above most"),
        pytest.param(["--freshness", "30 s", "--policy", "ds3"], id="unknown policy"),
        pytest.param(["--freshness", "30 s", "--mode", "restart"], id="unknown mode"),
        pytest.param(["--freshness", "30 s", "--guard", "budgt=3"], id="unknown guard"),
    ],
)
def test_a_mistake_is_found_before_the_program_starts(options, tmp_path, capsys):
    program = write(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert main(["attach", *options, program]) == 2
    assert not (tmp_path / "ran").exists()
    assert "error" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_an_error(tmp_path):
    assert main(["attach", "--freshness", "30 s", str(tmp_path / "none.py")]) == 2


def follow(session: Any, out: Path, **options: Any) -> SessionFollower:
    found = threading.Event()

    def find() -> Any:
        found.set()
        return session

    follower = SessionFollower(find, {"freshness": "30 s", "out": out, **options})
    follower.start()
    assert found.wait(10.0)
    return follower


def test_a_session_is_followed_until_the_program_ends(tmp_path, capsys):
    follower = follow(RemoteSession(RemoteQuery()), tmp_path / "run")
    follower.stop()
    assert (tmp_path / "run" / "result.json").is_file()
    assert "penstock: attached, see" in capsys.readouterr().err


def test_a_session_that_cannot_be_followed_is_one_line_on_stderr(tmp_path, capsys):
    follower = follow(object(), tmp_path / "run")
    follower.stop()
    assert "penstock: cannot attach: spark: must be a SparkSession" in capsys.readouterr().err
