"""A kept result goes stale when something it depends on changes, and with nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.lab.grid.simulated_backend import PACKAGE, code_digest, code_files, policy_files


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code that may be edited."""
    copy = tmp_path_factory.mktemp("src") / "penstock"
    shutil.copytree(PACKAGE, copy, ignore=lambda _, names: [n for n in names if n == "__pycache__"])
    return copy


def is_stale_after_a_change_of(file: str, package: Path) -> bool:
    code_digest.cache_clear()
    before, path = code_digest(package), package / file
    text = path.read_text()
    path.write_text(f"{text}CHANGED = True\n")
    code_digest.cache_clear()
    try:
        return code_digest(package) != before
    finally:
        path.write_text(text)
        code_digest.cache_clear()


@pytest.mark.parametrize(
    "file",
    [
        "core/guards.py",
        "control/loop.py",
        "workloads/registry.py",
        "engines/port.py",
        "engines/microbatch/batch_record.py",
        "engines/simulator/builder.py",
        "engines/simulator/fluid/engine.py",
        "runs/simulated_run.py",
        "runs/scores.py",
    ],
)
def test_results_depend_on_the_code_that_simulates(file: str, package: Path) -> None:
    assert is_stale_after_a_change_of(file, package)


@pytest.mark.parametrize(
    "file",
    [
        "engines/spark/engine.py",
        "engines/spark/run_layout.py",
        "runs/spark_run.py",
        "runs/execution.py",
        "reports/result_text.py",
        "cli/main.py",
        "lab/comparison/cells.py",
        "core/policies/ds2.py",  # only results of this policy, see below
    ],
)
def test_results_outlive_changes_of_everything_else(file: str, package: Path) -> None:
    assert not is_stale_after_a_change_of(file, package)


def test_a_policy_depends_on_the_policies_that_it_imports(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("from penstock.core.policies.static import POLICY\n")
    static = PACKAGE / "core" / "policies" / "static.py"
    assert set(policy_files(mine)) >= {mine, static}
    assert policy_files(static) == [static]


def test_every_room_that_a_simulated_run_imports_is_looked_at() -> None:
    """Besides them there are only errors, files, and modules that keep runs."""
    code = "import sys, penstock.runs.simulated_run; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    files = {
        PACKAGE.parent.joinpath(*m.split(".")).with_suffix(".py") for m in loaded.stdout.split()
    }
    ours = {file for file in files if file.is_relative_to(PACKAGE) and file.is_file()}
    others = {file.relative_to(PACKAGE) for file in ours - set(code_files(PACKAGE))}
    rooms = ("files", "runs", "core/policies")
    assert [f for f in others if not str(f).startswith(rooms) and f != Path("errors.py")] == []
