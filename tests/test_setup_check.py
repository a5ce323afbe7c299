"""Setting up on a machine that lacks something ends with one clear line."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_machine.sh"


def fake(directory: Path, name: str, body: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("java", "python", "message"),
    [
        ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", "exit 0", ""),
        ("echo 'openjdk version \"11.0.2\" 2018' >&2", "exit 0", "found Java 11"),
        ("echo 'java version \"1.8.0_402\"' >&2", "exit 0", "found Java 8"),
        (None, "exit 0", "found none"),
        ("echo 'openjdk version \"21\" 2023' >&2", "exit 1", "needs Python 3.11"),
        ("exit 0", 'case "$2" in *">= (3, 15)"*) exit 1 ;; esac', "have no wheels"),
    ],
)
def test_one_clear_line(tmp_path: Path, java: str | None, python: str, message: str) -> None:
    for tool in ("sh", "sed", "head"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    fake(tmp_path, "python3", python)
    if java:
        fake(tmp_path, "java", java)
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environment["PATH"] = str(tmp_path)
    done = subprocess.run(
        [str(tmp_path / "sh"), str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (2 if message else 0)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == (1 if message else 0)
