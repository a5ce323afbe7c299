"""`python -m penstock` is the command `penstock`."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("penstock"))
MODULE = (sys.executable, "-m", "penstock")


def run(*command: str, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["policies", "ds2"], 0), (["policies", "ds3"], 2), (["zzz"], 2), ([], 2)],
)
def test_both_print_the_same_and_end_with_the_same_code(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    as_module = run(*MODULE, *arguments, cwd=tmp_path)
    assert as_module == run(COMMAND, *arguments, cwd=tmp_path)
    assert as_module[0] == code
