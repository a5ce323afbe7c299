"""Commands in console blocks print exactly what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documents.pages import ROOT, blocks_of, console_examples, guides

pytestmark = pytest.mark.slow

#: What a command may read; what it writes stays in the temporary directory.
SHOWN = ("CONTRIBUTING.md", "README.md", "benchmarks", "docs", "examples", "experiments", "src")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory that looks like the root of the repository."""
    for name in SHOWN:
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def user_environment() -> dict[str, str]:
    """The environment of a shell in which penstock is installed."""
    binaries = str(Path(sys.executable).parent)
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    return inherited | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("page", [page for page in guides() if blocks_of(page, "console")])
def test_commands_print_what_the_page_shows(page: str, desk: Path) -> None:
    shown, printed = "", ""
    for block in blocks_of(page, "console"):
        for command, output in console_examples(block.text):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=desk,
                env=user_environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            shown += f"{page}:{block.line}: $ {command}\n{output.strip()}\n"
            printed += f"{page}:{block.line}: $ {command}\n{(done.stdout + done.stderr).strip()}\n"
    assert printed == shown
