"""Few layers for little writing; and a merge that changes nothing that anybody can see."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.state.factories import Disk, put

from penstock.state import state_files
from penstock.state.compaction import EVERY, choose_merges, merge_count
from penstock.state.handle import State
from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge, Version, next_version
from penstock.topics.embedded.segment import Segment


def state_file(number: int, size: int, slice: int = 0) -> StateFile:
    """A state file of some bytes that is nowhere."""
    segment = Segment(file=f"{number}.arrow", rows=size, bytes=size, crc=0)
    return StateFile(segment=segment, slice=slice, first=0, batches=1, rows=size, bytes=size)


@given(st.lists(st.integers(1, 1000), max_size=12))
def test_what_stays_is_more_than_twice_as_large_as_all_above(sizes: list[int]) -> None:
    number = merge_count(sizes)
    assert number == 0 or (number > 1 and sizes[number - 1] <= 2 * sum(sizes[: number - 1]))
    left = [sum(sizes[:number]), *sizes[number:]] if number else sizes
    assert all(size > 2 * sum(left[:place]) for place, size in enumerate(left) if place)


#: Sizes of batches: all alike, growing, shrinking, any, and a large one where its turn is.
SHAPES = {
    "alike": [1] * 400,
    "growing": list(range(1, 300)),
    "shrinking": list(range(300, 0, -1)),
    "any": [int(size) for size in np.random.default_rng(0).pareto(1, 400) * 10 + 1],
    "large at turns": [1 + 99 * (n % EVERY == 0) for n in range(400)],
    "large before turns": [1 + 99 * (n % EVERY == 3) for n in range(400)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_levels_are_few_and_rows_are_seldom_written_again(shape: str) -> None:
    version, written, total = Version(slices=1), 0, 0
    for number, size in enumerate(SHAPES[shape]):
        merged = []
        for chosen in choose_merges(version, number, [0]):
            into = state_file(-number - 1, sum(old.bytes for old in chosen))
            merged.append(FileMerge(state_files=chosen, into=into))
            written += into.bytes
        version = next_version(version, [state_file(number, size)], merged)
        total += size
        logarithm = len(f"{total:b}")
        assert len(version.of(0)) <= EVERY + 1 + logarithm
        assert written <= 2 * total * logarithm
    assert sum(layer.bytes for layer in version.of(0)) == total


def test_slices_take_turns() -> None:
    layers = {slice: (state_file(1, 5, slice), state_file(0, 5, slice)) for slice in range(64)}
    version = Version(slices=64, state_files=layers)
    turns = [
        [chosen[0].slice for chosen in choose_merges(version, n, range(64))] for n in range(EVERY)
    ]
    assert [len(turn) for turn in turns] == [64 // EVERY] * EVERY
    assert sorted(slice for turn in turns for slice in turn) == list(range(64))
    assert choose_merges(version, 0, [1, 2, 3]) == []


def delete(*words: str) -> Callable[[State], None]:
    """Work that deletes words."""
    return lambda state: state.delete(pa.array(words))


def merge_all(disk: Disk, first: int = 0, last: int | None = None) -> None:
    """A batch that does nothing but merge; the watermark stays where it is."""
    state = disk.state(watermark=disk.version.watermark)
    disk.commit(state, merge=[disk.version.of(0)[first:last]])


def stored(disk: Disk) -> list[dict[str, Any]]:
    """All rows in all layers, newest first, as they lie there."""
    layers = disk.layers.open(disk.version.of(0))
    return [row for layer in layers for chunk in layer.chunks for row in chunk.rows.to_pylist()]


def test_rows_that_are_gone_vanish_in_the_oldest_level_only(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for work in (put({"a": 1, "b": 2}), put({"c": 3}), delete("a")):
        disk.batch(work)
    merge_all(disk, 0, 2)
    assert sorted(row["word"] for row in stored(disk)) == ["a", "a", "b", "c"]
    assert sorted(row["word"] for row in disk.rows()) == ["b", "c"]
    merge_all(disk)
    assert sorted(row["word"] for row in stored(disk)) == ["b", "c"]


def test_old_rows_vanish_in_the_oldest_level_only(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ttl_us=10)
    disk.batch(put({"a": 1, "b": 1}))  # these do not age, so the newer ones still hide them
    disk.batch(put({"a": 2}), watermark=100)
    disk.batch(put({"c": 3}), watermark=120)
    for first, last, left in ((0, 2, 4), (0, None, 2)):
        merge_all(disk, first, last)
        assert len(stored(disk)) == left
        assert sorted(row["word"] for row in disk.rows()) == ["b", "c"]


def test_a_row_whose_timer_is_told_may_vanish_in_the_same_batch(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ttl_us=10)
    disk.batch(put({"told": 1, "waits": 2}, [130, 131]), watermark=100)
    state = disk.state(watermark=130)
    assert state.due()["word"].to_pylist() == ["told"]
    disk.commit(state, merge=[disk.version.of(0)])
    assert [row["word"] for row in stored(disk)] == ["waits"]


def test_nothing_left_is_no_run(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1}))
    disk.batch(delete("a"))
    merge_all(disk)
    assert disk.version.of(0) == () and disk.rows() == []


def test_several_slices_go_into_one_file(tmp_path: Path) -> None:
    disk = Disk(tmp_path, slices=3)
    for number in range(2):
        states = [disk.state(slice) for slice in range(3)]
        for state in states:
            state.put({"word": [f"{number}", "x"], "n": [number, state.slice]})
        disk.commit(*states)
    disk.commit(disk.state(), merge=[disk.version.of(slice) for slice in range(3)])
    assert len({disk.version.of(slice)[0].file for slice in range(3)}) == 1
    for slice in range(3):
        (layer,) = disk.version.of(slice)
        assert layer.rows == 3 and layer.at is None
        expected = [{"word": "0", "n": 0}, {"word": "1", "n": 1}, {"word": "x", "n": slice}]
        assert sorted(disk.rows(slice), key=lambda row: row["word"]) == expected


def test_a_merge_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1}))
    before = list((tmp_path / "segments").iterdir())

    def broken(*_: Any) -> Any:
        yield from ()
        raise RuntimeError("no")

    monkeypatch.setattr("penstock.state.compaction.merge", broken)
    with pytest.raises(RuntimeError):
        merge_all(disk)
    assert list((tmp_path / "segments").iterdir()) == before


def test_many_small_pieces_become_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path)
    monkeypatch.setattr(state_files, "MAX_CHUNK_ROWS", 5)
    for number in range(3):
        disk.batch(put({f"{number} {n}": n for n in range(100)}))
    merge_all(disk)
    (layer,) = disk.layers.open(disk.version.of(0))
    sizes = [len(chunk) for chunk in layer.chunks]
    assert sum(sizes) == 300 and max(sizes) == 5 and len(sizes) < 120
