"""Every way in which a state can be other than it was written is found and named."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.state.factories import KEY, VALUES, Disk
from tests.state.test_state_files import DAMAGE, files, filled

from penstock.state.check import check
from penstock.state.chunk import Chunk
from penstock.state.handle import State
from penstock.state.layout import make_layout
from penstock.state.state_files import StateFileWriter
from penstock.state.version import Version, next_version
from penstock.topics.ddl import parse_fields
from penstock.topics.hashing import hash_keys, slice_of


def test_all_is_well(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    assert check(disk.directory, disk.layout, disk.version) == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_named_once_with_all_its_slices(tmp_path: Path, kind: str) -> None:
    damage, problem = DAMAGE[kind]
    disk = filled(tmp_path)
    (path,) = files(disk)
    damage(path)
    (found,) = check(disk.directory, disk.layout, disk.version)
    assert found.file == f"segments/{path.name}" and found.slices == tuple(range(8))
    assert re.search(problem, found.problem)


def test_any_single_bit_is_noticed(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    (path,) = files(disk)
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        (found,) = check(disk.directory, disk.layout, disk.version)
        assert "was altered" in found.problem


def chunk(words: Sequence[str]) -> Chunk:
    """Words by hash, with their lengths, due at times of their own."""
    state = State.open(KEY, VALUES)
    numbers = [len(word) for word in words]
    state.put({"word": list(words), "n": numbers}, pa.array(range(len(words))))
    changes = state.changes()
    assert changes is not None
    return changes.chunks[0]


WORDS = ["a", "bb", "ccc", "dddd"]


def _reversed(good: Chunk) -> list[Chunk]:
    return [replace(good, hashes=good.hashes[::-1])]


def _backwards(good: Chunk) -> list[Chunk]:
    return [good.slice(2, 4), good.slice(0, 2)]


def _other_hash(good: Chunk) -> list[Chunk]:
    hashes = good.hashes.copy()
    hashes[-1] += np.uint64(1)
    return [replace(good, hashes=hashes)]


def _twice(good: Chunk) -> list[Chunk]:
    return [good.take(np.array([0, 1, 1, 2, 3]))]


INSIDE: dict[str, Callable[[Chunk], list[Chunk]]] = {
    "slice 0: the rows are not sorted by hash": _reversed,
    "slice 0: the record batches are not sorted by hash": _backwards,
    "slice 0: 1 rows have another hash than their keys": _other_hash,
    "slice 0: 1 keys occur twice": _twice,
}


@pytest.mark.parametrize("problem", INSIDE)
def test_rows_that_were_written_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    monkeypatch.setattr(
        "penstock.state.state_files._cut", iter
    )  # which would mend or hang on these
    writer = StateFileWriter(tmp_path, make_layout(KEY, VALUES), [])
    writer.write(0, INSIDE[problem](chunk(WORDS)))
    (found,) = check(
        tmp_path, make_layout(KEY, VALUES), next_version(Version(slices=1), writer.close())
    )
    assert found.problem == problem and found.slices == (0,)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 0, 1, 2]])
def test_a_wrong_index_of_timers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[int]
) -> None:
    good = chunk(WORDS)
    assert np.argsort(good.timers).tolist() != order
    with monkeypatch.context() as patch:
        patch.setattr(np, "argsort", lambda *_, **__: np.array(order))
        writer = StateFileWriter(tmp_path, make_layout(KEY, VALUES), ["_timer", "_order"])
        writer.write(0, [good])
    (found,) = check(
        tmp_path, make_layout(KEY, VALUES), next_version(Version(slices=1), writer.close())
    )
    assert found.problem == "slice 0: the index of timers is wrong"


def test_rows_in_the_wrong_slice(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    swapped = {
        slice: tuple(replace(state_file, slice=slice) for state_file in disk.version.of(7 - slice))
        for slice in range(8)
    }
    found = check(disk.directory, disk.layout, replace(disk.version, state_files=swapped))
    assert [damage.slices for damage in found] == [(slice,) for slice in range(7, -1, -1)]
    assert all("belong to other slices" in damage.problem for damage in found)


def test_a_part_of_the_key_may_decide_the_slice(tmp_path: Path) -> None:
    key = pa.schema(parse_fields("word string, start long"))
    disk = Disk(tmp_path, key, VALUES, slices=4)
    owners = slice_of(hash_keys([pa.array(["a"])]), 4)
    state = disk.state(int(owners[0]))
    state.put({"word": ["a"] * 20, "start": range(20), "n": range(20)})
    disk.commit(state)
    assert check(tmp_path, disk.layout, disk.version, by=["word"]) == []
    (found,) = check(tmp_path, disk.layout, disk.version)
    assert "belong to other slices" in found.problem


def test_other_columns_than_declared(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    other = make_layout(KEY, pa.schema({"m": pa.int64()}))
    (found,) = check(disk.directory, other, disk.version)
    assert found.problem == "the state has 'n' (long), but 'm' (long) is declared"


@pytest.mark.parametrize(("number", "problems"), [(0, 0), (2, 1)])
def test_without_columns_that_decide_all_is_in_slice_0(
    tmp_path: Path, number: int, problems: int
) -> None:
    disk = Disk(tmp_path, pa.schema(parse_fields("start long")), VALUES, slices=4)
    state = disk.state(number)
    state.put({"start": range(20), "n": range(20)})
    disk.commit(state)
    found = check(tmp_path, disk.layout, disk.version, by=())
    assert len(found) == problems
    assert all(damage.problem == "slice 2: 20 rows belong to other slices" for damage in found)


def test_a_key_that_any_slice_may_have(tmp_path: Path) -> None:
    disk = Disk(tmp_path, slices=4)
    states = [disk.state(number) for number in range(4)]
    for state in states:
        state.put({"word": ["rule"], "n": [1]})
    disk.commit(*states)
    assert check(tmp_path, disk.layout, disk.version, in_any=True) == []
    assert len(check(tmp_path, disk.layout, disk.version)) == 3
