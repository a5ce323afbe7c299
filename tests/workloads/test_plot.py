"""Pictures of workloads; drawn only where matplotlib is."""

import sys
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.workloads.plot import draw_workload
from penstock.workloads.workload import Workload

LOAD = Workload.of_steps([1, 3, 2])


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"plot: must end in \.png, \.svg, \.pdf, got"):
        draw_workload(LOAD, "title", str(tmp_path / "load.jpg"))


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plot: there is no directory"):
        draw_workload(LOAD, "title", str(tmp_path / "no" / "load.png"))


def test_without_matplotlib_there_is_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"--plot: needs matplotlib: pip install '.\[plots\]'"):
        draw_workload(LOAD, "title", str(tmp_path / "load.png"))


@pytest.mark.parametrize(("ending", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_ending_chooses_the_format(tmp_path: Path, ending: str, head: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = draw_workload(LOAD, "title", str(tmp_path / f"load.{ending}"))
    assert path.read_bytes().startswith(head)
