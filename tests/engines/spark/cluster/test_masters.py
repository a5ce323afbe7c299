"""Without Java a run says so at once, and leaves nothing behind."""

from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.engines.spark.cluster.masters import check_java

GRID = 'on = "spark"\n[base]\nquery = "images"\n[grid]\npolicy = ["ds2"]\n'


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nothing is installed."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "images"],
        ["run", "images", "--out", "kept"],
        ["run", "images", "--compare", "ds2,psps"],
        ["nexmark", "run", "--query", "q1"],
        ["nexmark", "verify", "--query", "q1", "--events", "100"],
        ["lab", "run", "grid.toml"],
    ],
)
def test_without_java_nothing_is_begun(
    argv: list[str], without_java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    assert main(argv) == 2
    told = capsys.readouterr().err
    assert "error: java: is not installed, or not on the PATH\nhint: Spark needs Java 17" in told
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.toml"]


def test_a_wrong_java_home_is_named(
    without_java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Exception, match="JAVA_HOME: there is no bin/java"):
        check_java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    check_java()


def test_without_duckdb_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    monkeypatch.setattr(
        "penstock.lab.nexmark_verify.start_session", lambda *_: pytest.fail("began")
    )
    assert main(["nexmark", "verify", "--query", "q1", "--events", "100"]) == 2
    assert (
        "needs duckdb: pip install '.[nexmark]' in a clone, or 'WHEEL[nexmark]'"
        in capsys.readouterr().err
    )
