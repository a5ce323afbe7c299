"""Two thousand fuzzed command lines: each ends with a documented exit code and no traceback."""

from pathlib import Path

import pytest
from tests.cli.fuzz_files import make_files
from tests.cli.fuzz_run import run_case

pytestmark = pytest.mark.slow

CASES, PARTS = 2000, 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command lines refer to."""
    place = tmp_path_factory.mktemp("fuzz") / "files"
    place.mkdir()
    make_files(place)
    return place


@pytest.mark.parametrize("part", range(PARTS))
def test_no_command_line_ends_in_a_traceback(
    part: int, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    before = set(Path("/dev").iterdir())
    broken = []
    for number in range(part, CASES, PARTS):
        outcome = run_case(number, files)
        if outcome.problems:
            broken.append((number, outcome.problems, outcome.case.argv, outcome.err[-300:]))
    assert broken == []
    assert set(Path("/dev").iterdir()) == before
