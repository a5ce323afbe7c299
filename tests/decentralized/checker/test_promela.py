"""The Promela model of the protocol, checked by Spin, against the model checker."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.decentralized.checker.configuration import BUGS, CheckConfig
from penstock.decentralized.checker.verdict import check_protocol

MODEL = Path(__file__).parents[3] / "docs" / "decentralized.pml"
MISSING = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
#: Bugs that the model can have too; the others need more than one copy or are combinations.
MODEL_BUGS = sorted(BUGS.keys() - {"decide-while-busy", "as-printed"})

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


def run_spin(directory: Path, macros: list[str], compiler: list[str], options: list[str]) -> str:
    """Translate, compile and run the model; return what Spin prints."""
    for command in (
        ["spin", "-a", *macros, str(MODEL)],
        ["gcc", "-O0", "-w", "-DNOREDUCE", *compiler, "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)
    run = ["./pan", "-m100000", *options]
    ended = subprocess.run(run, cwd=directory, check=True, capture_output=True, timeout=600)
    return ended.stdout.decode()


def read_count(report: str, pattern: str) -> int:
    """Read a number of Spin's report."""
    match = re.search(pattern, report)
    assert match is not None, report
    return int(match[1])


@pytest.mark.parametrize(("actions", "records"), [(1, 1), (2, 0), (2, 1), (3, 0)])
def test_spin_finds_the_same_states_and_steps(tmp_path: Path, actions: int, records: int) -> None:
    macros = [f"-DACTIONS={actions}", f"-DRECORDS={records}"]
    report = run_spin(tmp_path, macros, ["-DSAFETY"], [])
    verdict = check_protocol(
        CheckConfig(
            instances=(1, 1, 1),
            max_instances=2,
            actions=actions,
            records=records,
            reuses_names=False,
            has_symmetry=False,
            has_partial_order=False,
        )
    )
    assert verdict.violation is None
    assert verdict.is_complete
    assert read_count(report, r"errors: (\d+)") == 0
    # Spin counts one state and one step more, before the pipeline has its first nodes, and one
    # transition for the first state
    assert read_count(report, r"(\d+) states, stored") == verdict.states + 1
    assert read_count(report, r"(\d+) transitions") == verdict.steps + 2


@pytest.mark.parametrize("bug", MODEL_BUGS)
def test_spin_finds_the_same_bugs(tmp_path: Path, bug: str) -> None:
    macro = f"-D{bug.upper().replace('-', '_')}"
    report = run_spin(tmp_path, [macro], ["-DSAFETY"], [])
    assert read_count(report, r"errors: (\d+)") == 1  # the checker's verdicts: test_verdict.py


def test_spin_finds_no_endless_run_without_decisions(tmp_path: Path) -> None:
    macros = ["-DLIVENESS", "-DRECORDS=1", "-DACTIONS=1"]
    report = run_spin(tmp_path, macros, ["-DNP"], ["-l"])
    assert read_count(report, r"errors: (\d+)") == 0
