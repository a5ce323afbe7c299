"""The commands of a page run as a reader would run them, in an empty directory, with Spark."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents.pages import PLAYED, ROOT, find_blocks, read_page
from tests.documents.test_console import user_environment

WITHIN_S = 900.0
#: A reader who looks at a run before Spark has started it tries again a little later.
PROLOGUE = """
set -euxo pipefail
penstock() {
    if [ "$1" = run ]; then command penstock "$@" --plain; return; fi
    for try in $(seq 60); do
        command penstock "$@" && return
        [ -n "$(jobs -r)" ] || break
        sleep 2
    done
    return 1
}
"""


def make_script(text: str) -> str:
    """Return a page as a script: files are written, commands run, the rest is left out."""
    parts = [PROLOGUE]
    for block in find_blocks(text):
        if block.file:
            parts.append(f"cat > {block.file} <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK\n")
        elif block.language == "sh":
            parts.append(block.text)
    return "".join([*parts, "wait\n"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Path]:
    """A directory with the examples and the pages; what was started in it ends."""
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    yield tmp_path


@pytest.mark.spark
@pytest.mark.parametrize("page", PLAYED)
def test_every_command_of_the_page_succeeds(page: str, desk: Path) -> None:
    with (desk / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            ["bash", "-c", make_script(read_page(page))],
            cwd=desk,
            env=user_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(WITHIN_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        assert code == 0, output.read()[-5000:]


@pytest.mark.parametrize("page", PLAYED)
def test_the_page_is_there_and_has_commands(page: str) -> None:
    assert any(block.language == "sh" for block in find_blocks(read_page(page)))


def test_a_page_becomes_a_script() -> None:
    page = "<!-- file: a.py -->\n```python\na = 1\n```\n```sh\npenstock check ./a.py\n```\n"
    expected = "cat > a.py <<'END_OF_BLOCK'\na = 1\nEND_OF_BLOCK\npenstock check ./a.py\nwait\n"
    assert make_script(page) == PROLOGUE + expected
