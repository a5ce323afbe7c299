"""States that are larger than the memory, or have many keys."""

import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.state import large

from penstock.state.check import check

SPAWN = multiprocessing.get_context("spawn")


@pytest.mark.slow
def test_a_slice_four_times_as_large_as_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # allocators that reserve more than is asked for would be measured, and not the state
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "524288")
    ours, theirs = SPAWN.Pipe()
    child = SPAWN.Process(target=large.work_in_little_memory, args=(tmp_path / "s", theirs))
    child.start()
    theirs.close()
    try:
        limit = ours.recv()
        disk = large.texts(tmp_path / "s", 4 * limit)
        assert disk.version.of(0)[0].bytes > 4 * limit
        keys = disk.version.of(0)[0].rows
        ours.send(disk.version)
        assert ours.recv() == "memory is short"
        ids, was_found = ours.recv()
        assert was_found
        disk.version = ours.recv()
        (state_file,) = disk.version.of(0)
        assert ours.recv() == state_file.rows == keys - large.DELETED
        assert check(disk.directory, disk.layout, disk.version) == []
        found = disk.state().get(pa.array(ids))["text"].to_pylist()
        assert found == [None if number < large.DELETED else "new" for number in ids.tolist()]
        child.join()
        assert child.exitcode == 0
    finally:
        child.kill()
        shutil.rmtree(tmp_path / "s", ignore_errors=True)


@pytest.mark.slow
def test_a_batch_takes_about_as_long_with_many_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {}
    random = np.random.default_rng(0)
    for keys in (100_000, 1_000_000, 10_000_000):
        disk = large.numbers(tmp_path / f"{keys}", keys, slices=64)
        batches = [pa.array(random.integers(0, keys, 100_000)) for _ in range(3)]
        seconds[keys] = min(large.count(disk, ids) for ids in batches)
        shutil.rmtree(disk.directory)
    with capsys.disabled():
        print(*(f"\n{keys:>10,} keys: {s:.3f} s CPU" for keys, s in seconds.items()))
    assert seconds[10_000_000] < 10 * seconds[100_000]
