"""Workers find the modules of a model there already."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from penstock.engines.spark.cluster.worker_process import (
    VARIABLE,
    needed_modules,
    set_module_list,
    write_module_list,
)
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.resources import SharedResource


def test_the_modules_of_a_model_are_known() -> None:
    pipeline = Pipeline("models")

    @pipeline.batches("a", "b", resource=SharedResource(lambda: Fraction(1, 3)))
    def one(batch: object, third: Fraction) -> None:
        """Never called."""

    @pipeline.batches("b", "c", resource=lambda: 3)
    def other(batch: object, three: int) -> None:
        """What a process opens for itself is its own matter."""

    assert "fractions" in needed_modules([one, other])
    assert needed_modules([other]) == []


def test_a_process_imports_what_is_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "")
    path = tmp_path / "a list"
    set_module_list(path)
    imports_it = (
        "import sys; from penstock.engines.spark.cluster.worker_process import import_module_list;"
        " assert 'wave' not in sys.modules; import_module_list(); sys.exit('wave' in sys.modules)"
    )
    command = [sys.executable, "-c", imports_it]
    assert subprocess.run(command, check=False).returncode == 0, "nothing is listed yet"
    write_module_list(path, ["wave", "there_is.no_such_module"])
    assert subprocess.run(command, check=False).returncode == 1


class Compiler:
    """A function that wants something done before workers start."""

    def preload(self) -> None:
        import wave  # noqa: F401, PLC0415

    def __call__(self, batch: object) -> None:
        """Never called."""


def test_a_process_calls_what_a_function_preloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pipeline = Pipeline("compiled")
    operator = pipeline.batches("a", "b")(Compiler())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "list"))
    write_module_list(tmp_path / "list", needed_modules([operator]))
    code = (
        "import sys; from penstock.engines.spark.cluster.worker_process import import_module_list;"
        " import_module_list(); sys.exit('wave' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
