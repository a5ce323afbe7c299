"""Layers in files: what is written is found again, and damage is found before it is used."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.state.factories import KEY, VALUES, Disk, put

from penstock.errors import DamagedStateError, FullError, InputError
from penstock.state import mapped_files as opening
from penstock.state import state_files
from penstock.state.handle import State
from penstock.state.layout import make_layout
from penstock.state.mapped_files import LayerCache
from penstock.state.state_files import StateFile, write_layers
from penstock.topics.hashing import hash_keys, split


def files(disk: Disk) -> list[Path]:
    """Files on disk, by name."""
    return sorted((disk.directory / "segments").iterdir())


def columns(path: Path) -> list[str]:
    """Names of the columns in a file, read by Arrow alone."""
    with pa.OSFile(str(path)) as source:
        names: list[str] = pa.ipc.open_file(source).schema.names
    return names


def filled(tmp_path: Path, slices: int = 8) -> Disk:
    """A state of a hundred words in one file."""
    disk = Disk(tmp_path / "counts", slices=slices)
    rows = pa.record_batch({"word": [f"{n}" for n in range(100)], "n": range(100)})
    states = []
    for number, part in split(rows, hash_keys([rows["word"]]), slices).items():
        states.append(disk.state(number))
        states[-1].put(part)
    disk.commit(*states)
    return disk


def test_one_file_for_all_slices_of_a_task(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    assert len(files(disk)) == 1
    written = [state_file for number in range(8) for state_file in disk.version.of(number)]
    assert {state_file.slice for state_file in written} == set(range(8))
    assert sum(state_file.rows for state_file in written) == written[0].segment.rows == 100
    found = [row for number in range(8) for row in disk.rows(number)]
    assert {row["word"]: row["n"] for row in found} == {f"{n}": n for n in range(100)}


def test_a_run_is_json(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    for number in range(8):
        (state_file,) = disk.version.of(number)
        assert StateFile.from_json(state_file.to_json()) == state_file


def test_nothing_changed_is_no_file(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "counts")
    disk.batch(lambda state: state.get(pa.array(["a"])))
    assert files(disk) == [] and disk.version.of(0) == ()


def test_columns_that_say_nothing_are_not_written(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "counts")
    names = []
    for work in (put({"a": 1}), lambda state: state.delete(pa.array(["a"])), put({"b": 1}, [5])):
        before = set(files(disk)) if disk.version.state_files else set()
        disk.batch(work)
        (new,) = set(files(disk)) - before
        names.append(columns(new))
    plain = ["_hash", "word", "n"]
    assert names == [plain, [*plain, "_gone"], [*plain, "_timer", "_order"]]
    aging = Disk(tmp_path / "aging", ttl_us=10)
    aging.batch(put({"a": 1}), watermark=5)
    assert columns(*files(aging)) == [*plain, "_seen"]


def test_reading_copies_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "counts")
    disk.batch(put({f"{n:040d}": n for n in range(50_000)}))
    disk.reopen()
    before = pa.total_allocated_bytes()
    (layer,) = disk.layers.open(disk.version.of(0))
    assert len(layer) == 50_000 and len(layer.chunks) > 1
    assert pa.total_allocated_bytes() - before < 10_000


def test_chunks_are_small_whatever_the_rows(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "counts", KEY, pa.schema({"text": pa.string()}))
    texts = ["x" * 100_000] * 200
    disk.batch(lambda state: state.put({"word": [f"{n}" for n in range(200)], "text": texts}))
    (layer,) = disk.layers.open(disk.version.of(0))
    sizes = [chunk.rows.nbytes for chunk in layer.chunks]
    assert max(sizes) < 1.2 * state_files.MAX_CHUNK_BYTES and len(sizes) < 15


def test_rows_with_one_hash_stay_in_one_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "MAX_CHUNK_ROWS", 2)
    monkeypatch.setattr("penstock.state.handle.hash_keys", lambda c: hash_keys(c) & 1 << 63)
    disk = Disk(tmp_path / "counts")
    disk.batch(put({f"{n}": n for n in range(20)}))
    (layer,) = disk.layers.open(disk.version.of(0))
    assert len(layer.chunks) == 2
    assert len({int(chunk.hashes[0]) for chunk in layer.chunks}) == 2


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = []
    for _ in range(20):
        disk.reopen()
        kept.append(disk.layers.open(disk.version.of(0)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_levels_are_opened_once_and_let_go(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    (one,), (again,) = disk.layers.open(disk.version.of(0)), disk.layers.open(disk.version.of(0))
    assert one is again
    disk.layers.keep([])
    for path in files(disk):
        path.unlink()
    assert one.chunks[0].rows.num_rows  # whoever still has it can read it
    with pytest.raises(DamagedStateError, match="missing"):
        disk.layers.open(disk.version.of(0))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _other(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (_cut, r"has \d+ bytes, expected \d+"),
    "emptied": (_empty, r"has 0 bytes, expected \d+"),
    "longer": (_longer, r"has \d+ bytes, expected \d+"),
    "altered": (_flip, r"was altered: checksum [0-9a-f]{8}, expected [0-9a-f]{8}"),
    "missing": (Path.unlink, "missing"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_named(tmp_path: Path, kind: str) -> None:
    damage, problem = DAMAGE[kind]
    disk = filled(tmp_path)
    disk.reopen()
    (path,) = files(disk)
    damage(path)
    with pytest.raises(DamagedStateError, match=problem) as raised:
        disk.state()
    assert str(raised.value).startswith(f"state of counts: segments/{path.name}: ")
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args


def test_large_files_are_opened_without_reading_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = filled(tmp_path)
    monkeypatch.setattr(opening, "MAX_VERIFIED_BYTES", 10)
    (path,) = files(disk)
    for damage, problem in ((None, ""), (_other, "is no Arrow file"), (_cut, r"has \d+ bytes")):
        disk.reopen()
        if damage is None:
            disk.state()
            continue
        damage(path)
        with pytest.raises(DamagedStateError, match=problem):
            disk.state()


def test_a_run_that_promises_what_is_not_there(tmp_path: Path) -> None:
    disk = filled(tmp_path)
    data = disk.version.of(7)[0].to_json()
    for change, problem in (
        ({"rows": 99}, r"has \d+ rows of slice 7, expected 99"),
        ({"batches": 3}, "has 8 record batches, expected 10"),
    ):
        state_file = StateFile.from_json(data | change)
        with pytest.raises(DamagedStateError, match=problem):
            LayerCache(disk.directory, disk.layout).open([state_file])


@pytest.mark.parametrize(
    ("key", "values", "problem"),
    [
        ({"word": pa.string()}, {"n": pa.float64()}, "has 'n' (long), but 'n' (double)"),
        ({"name": pa.string()}, {"n": pa.int64()}, "has 'word' (string), but 'name' (string)"),
        ({"word": pa.string()}, {}, "has 2 columns, but 1 are declared"),
    ],
)
def test_a_state_with_other_columns_is_refused(
    tmp_path: Path, key: dict[str, pa.DataType], values: dict[str, pa.DataType], problem: str
) -> None:
    disk = filled(tmp_path)
    other = LayerCache(disk.directory, make_layout(pa.schema(key), pa.schema(values)))
    with pytest.raises(InputError) as raised:
        other.open(disk.version.of(0))
    assert problem in str(raised.value) and "hint:" in str(raised.value)


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    state = State.open(KEY, VALUES)
    put({"a": 1})(state)
    changes = state.changes()
    assert changes is not None
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FullError, match="No space left on device"):
        write_layers(tmp_path, make_layout(KEY, VALUES), {0: changes})
    assert list((tmp_path / "segments").iterdir()) == []
