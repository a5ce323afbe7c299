"""A process that dies in a user's function leaves word about the rows. Real processes die here."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.engines.spark.io.call_marker import (
    CallMarker,
    clear_marks,
    count_deaths,
    find_deadliest,
    read_marks,
    read_stack,
)
from penstock.engines.spark.run_layout import RunLayout

CALL = """
import os, sys, time
from pathlib import Path
from penstock.engines.spark.io.call_marker import CallMarker
from penstock.engines.spark.run_layout import RunLayout
first, end, limit = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) or None
with CallMarker(RunLayout(Path(sys.argv[1])), "enrich", 0, limit) as marker:
    marker.enter("orders", first, end)
    with marker.limit():
        exec(sys.argv[5])
"""


def call(layout: RunLayout, first: int, end: int, code: str, limit_s: float = 0.0) -> int:
    """Call a function in a process of its own; return its exit code."""
    given = [str(layout.run), str(first), str(end), str(limit_s), code]
    return subprocess.run([sys.executable, "-c", CALL, *given], check=False, timeout=60).returncode


def test_a_call_that_ends_leaves_nothing(layout: RunLayout) -> None:
    assert call(layout, 3, 9, "pass") == 0
    assert read_marks(layout, "enrich") == []


def test_a_call_that_raises_leaves_nothing(layout: RunLayout) -> None:
    with pytest.raises(ValueError, match="no"), CallMarker(layout, "enrich", 0, None) as marker:
        marker.enter("orders", 3, 9)
        raise ValueError("no")
    assert read_marks(layout, "enrich") == []


@pytest.mark.parametrize("code", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_each_death_on_the_same_rows_is_counted(layout: RunLayout, code: str) -> None:
    for deaths in range(3):
        assert call(layout, 3, 9, code) != 0
        (mark,) = read_marks(layout, "enrich")
        assert (mark.topic, mark.first, mark.end, mark.deaths) == ("orders", 3, 9, deaths)
    assert call(layout, 9, 12, code) != 0  # other rows
    assert [mark.deaths for mark in read_marks(layout, "enrich")] == [0]


def test_a_call_that_takes_too_long_ends_its_process_and_leaves_its_stack(
    layout: RunLayout,
) -> None:
    began = time.monotonic()
    hangs_in_c = "import ctypes; ctypes.PyDLL(None).sleep(50)"  # with the interpreter's lock held
    assert call(layout, 3, 9, hangs_in_c, limit_s=0.5) == 1
    assert time.monotonic() - began < 40
    (mark,) = read_marks(layout, "enrich")
    assert (mark.first, mark.end) == (3, 9)
    assert read_stack(layout, "enrich").startswith("Timeout (0:00:00.5")


def test_rows_that_kill_twice_are_poison_and_stay_it(layout: RunLayout) -> None:
    call(layout, 0, 10, "os._exit(1)")  # a chunk, then its rows one by one
    for row in (4, 7):
        for _ in range(2):
            call(layout, row, row + 1, "os._exit(1)")
    with CallMarker(layout, "enrich", 1, None) as marker:
        problems = {row: marker.poison("orders", row) for row in range(10)}
        assert [row for row, problem in problems.items() if problem] == [4, 7]
        assert problems[4] == "the worker process died"
        assert marker.is_suspect("orders", 0, 10)
        assert not marker.is_suspect("orders", 10, 20)
        assert not marker.is_suspect("others", 0, 10)


def test_the_call_with_most_deaths_is_blamed(layout: RunLayout) -> None:
    call(layout, 3, 9, "os._exit(1)")
    call(layout, 3, 9, "os._exit(1)")
    with CallMarker(layout, "enrich", 1, None) as innocent:
        innocent.enter("orders", 20, 30)
        marks = read_marks(layout, "enrich")
        assert len(marks) == 2
        blamed = find_deadliest(marks)
        assert blamed is not None
        assert (blamed.first, blamed.deaths) == (3, 1)
        assert count_deaths(marks, "orders", 8, 9) == 2


def test_a_mark_that_is_being_written_is_no_mark(layout: RunLayout) -> None:
    layout.marks("enrich").mkdir(parents=True)
    (layout.marks("enrich") / "0.json").write_text('{"topic": "orders", "fir')
    assert read_marks(layout, "enrich") == []
    clear_marks(layout, "enrich")
    assert list(layout.marks("enrich").iterdir()) == []


def test_marking_costs_next_to_nothing(tmp_path: Path) -> None:
    """Two hundred calls, in processor time: far below what calling a function on rows takes."""
    with CallMarker(RunLayout(tmp_path), "enrich", 0, None) as marker:
        began = time.process_time()
        for number in range(200):
            marker.enter("orders", number, number + 1)
        assert time.process_time() - began < 0.2
    assert (tmp_path / "marks" / "enrich" / "0.json").stat().st_size == 0
