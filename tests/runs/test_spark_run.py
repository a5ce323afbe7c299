"""How a run ended; the JVM's output is bounded while it is written."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.runs.spark_run import _Run, bound_output

CHILD = """
import sys
for line in sys.stdin:
    print(line.strip() * 100, flush=True)
    print("done", file=sys.stderr, flush=True)
"""


def test_a_file_is_emptied_under_the_process_that_appends_to_it(tmp_path: Path) -> None:
    path = tmp_path / "spark.out"
    assert not bound_output(path)
    with path.open("ab") as stream:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
        )
    with child:
        assert child.stdin is not None and child.stderr is not None
        for number in range(20):
            print(f"line-{number}", file=child.stdin, flush=True)
            assert child.stderr.readline() == "done\n"
            bound_output(path, max_bytes=2_000)
            assert path.stat().st_size <= 2_000
        child.stdin.close()
    before, now = (tmp_path / "spark.out.1").read_text(), path.read_text()
    assert "\0" not in now  # it is appended to, not written behind a hole
    assert f"{before}{now}".rstrip().endswith("line-19" * 100)


@pytest.mark.parametrize(
    ("errors", "is_asked", "is_drained", "load", "ended"),
    [
        pytest.param({"parse": "seven"}, False, False, None, "failed", id="an operator failed"),
        pytest.param({"parse": "seven"}, True, True, 1, "failed", id="whatever else happened"),
        pytest.param({}, True, False, None, "stopped", id="a signal came"),
        pytest.param({}, False, True, 1, "finished", id="all is worked off"),
        pytest.param({}, False, False, 1, "cut", id="some rows still wait"),
        pytest.param({}, False, False, None, "finished", id="the minutes of production are over"),
    ],
)
def test_how_a_run_ended(
    errors: dict[str, str], is_asked: bool, is_drained: bool, load: object, ended: str
) -> None:
    run: Any = SimpleNamespace(
        _stop=SimpleNamespace(is_asked=is_asked), _prepared=SimpleNamespace(load=load)
    )
    engine: Any = SimpleNamespace(operator_errors=errors)
    condition: Any = SimpleNamespace(is_drained=is_drained)
    assert _Run._how(run, engine, condition) == ended
