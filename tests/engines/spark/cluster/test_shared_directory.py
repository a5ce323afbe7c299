"""A task says why its machine cannot use the run directory of the driver."""

from pathlib import Path

import pytest

from penstock.engines.spark.cluster import shared_directory
from penstock.engines.spark.cluster.shared_directory import _look


def test_a_directory_that_both_see_is_fine(tmp_path: Path) -> None:
    (tmp_path / "question").write_text("token")
    assert _look(tmp_path / "question", "token", 3) == ""
    assert (tmp_path / "question-3").exists()


def test_one_that_is_missing_or_another_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_directory.socket, "gethostname", lambda: "node-7")
    assert (
        _look(tmp_path / "q", "token", 0) == "host node-7 cannot use it: No such file or directory"
    )
    (tmp_path / "q").write_text("of before")
    assert _look(tmp_path / "q", "token", 0) == "host node-7 has another directory of that name"
