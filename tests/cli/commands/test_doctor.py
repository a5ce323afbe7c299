"""`penstock doctor` on this machine, and without Java."""

import json
from pathlib import Path

import pytest

from penstock.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_this_machine_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["doctor", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert code == (1 if data["result"] == "problem" else 0)
    checks = [found["check"] for found in data["findings"]]
    for check in ("python", "java", "pyspark", "memory", "disk", "write access", "host name"):
        assert check in checks
    assert list(tmp_path.iterdir()) == []


def test_without_java_there_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["doctor"]) == 1
    assert "PROBLEM  java           there is no java on the PATH" in capsys.readouterr().out
