"""Workers find the modules of a model there already."""

import subprocess
import sys
from fractions import Fraction

import pytest

from penstock.engines.spark.preloading import VARIABLE, ask_for, import_asked, modules_of
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.shipped import Shipped


def test_the_modules_of_a_model_are_known() -> None:
    pipeline = Pipeline("models")

    @pipeline.batches("a", "b", resource=Shipped(lambda: Fraction(1, 3)))
    def one(batch: object, third: Fraction) -> None:
        """Never called."""

    @pipeline.batches("b", "c", resource=lambda: 3)
    def other(batch: object, three: int) -> None:
        """What a process opens for itself is its own matter."""

    assert "fractions" in modules_of([one, other])
    assert modules_of([other]) == []


def test_a_process_that_is_asked_imports_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    ask_for(["wave", "there_is.no_such_module"])
    code = (
        "import sys; from penstock.engines.spark.preloading import import_asked;"
        " assert 'wave' not in sys.modules; import_asked(); assert 'wave' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_asked_nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    import_asked()
