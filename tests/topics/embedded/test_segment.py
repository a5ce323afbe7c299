"""Files of rows, and every way in which one can be damaged."""

import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topics.factories import SCHEMA, files, rows, segment

from penstock.errors import DamagedError, InputError
from penstock.topics.embedded.segment import FileSegmentWriter, Segment, read_rows, verify
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import with_event


def test_what_is_written_is_summed_up(topic: Topic) -> None:
    written = segment(topic, 1, 2, 3)
    content = (topic.directory / "segments" / written.file).read_bytes()
    assert (written.rows, written.bytes, written.crc) == (3, len(content), zlib.crc32(content))
    assert Segment.from_json(written.to_json()) == written


def test_any_reader_of_arrow_can_read_it(topic: Topic) -> None:
    written = segment(topic, 1, 2, 3)
    table = pa.ipc.open_file(topic.directory / "segments" / written.file).read_all()
    assert table.equals(rows([1, 2, 3]).cast(topic.schema))


def test_no_rows_no_file(topic: Topic) -> None:
    writer = topic.segment_writer()
    writer.write(rows([]))
    assert writer.close() is None and files(topic.directory) == []


def test_an_aborted_segment_leaves_nothing(topic: Topic) -> None:
    begun, closed = topic.segment_writer(), topic.segment_writer()
    for writer in (begun, closed):
        writer.write(rows([1]))
    closed.close()
    for writer in (begun, closed, topic.segment_writer()):
        writer.abort()
    assert files(topic.directory) == []


def test_wrong_rows_are_refused_and_nothing_is_written(topic: Topic) -> None:
    with pytest.raises(InputError, match="column 'text' \\(string\\) is missing"):
        topic.segment_writer().write(rows([1]).drop(["text"]))
    assert files(topic.directory) == []


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    bounds=st.tuples(st.integers(0, 25), st.integers(0, 25)),
)
def test_any_range_over_any_batches(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], bounds: tuple[int, int]
) -> None:
    directory = tmp_path_factory.mktemp("topic")
    (directory / "segments").mkdir()
    writer = FileSegmentWriter(directory, with_event(SCHEMA))
    for number, size in enumerate(sizes):
        writer.write(rows(range(sum(sizes[:number]), sum(sizes[:number]) + size)))
    written = writer.close()
    low, high = sorted(min(bound, sum(sizes)) for bound in bounds)
    if written is None or low == high:
        return
    path = directory / "segments" / written.file
    found = [i for b in read_rows(path, written, low, high) for i in b.column("id").to_pylist()]
    assert found == list(range(low, high))


def test_only_the_columns_asked_for(topic: Topic) -> None:
    written = segment(topic, 1, 2)
    path = topic.directory / "segments" / written.file
    (batch,) = read_rows(path, written, 0, 2, columns=["text"])
    assert batch.to_pydict() == {"text": ["row 1", "row 2"]}


def test_reading_copies_nothing(topic: Topic) -> None:
    written = segment(topic, *range(10_000))
    before = pa.total_allocated_bytes()
    path = topic.directory / "segments" / written.file
    batches = list(read_rows(path, written, 0, 10_000, ["id"]))
    assert pa.total_allocated_bytes() - before < written.bytes / 10
    assert sum(batch.num_rows for batch in batches) == 10_000


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


DAMAGE = {
    "cut short": (_cut, r"has \d+ bytes, expected \d+"),
    "emptied": (_empty, r"has 0 bytes, expected \d+"),
    "longer": (_longer, r"has \d+ bytes, expected \d+"),
    "altered": (_flip, r"was altered: checksum [0-9a-f]{8}, expected [0-9a-f]{8}"),
    "missing": (Path.unlink, "missing"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_every_damage_is_found_and_named(topic: Topic, kind: str) -> None:
    damage, problem = DAMAGE[kind]
    written = segment(topic, *range(100))
    path = topic.directory / "segments" / written.file
    damage(path)
    for look in (lambda: verify(path, written), lambda: next(read_rows(path, written, 0, 100))):
        with pytest.raises(DamagedError, match=problem) as raised:
            look()
        assert raised.value.topic == "images"
        assert raised.value.file == f"segments/{written.file}"


@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_single_bit_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    topic = Topic.create(tmp_path_factory.mktemp("topic"), SCHEMA)
    written = segment(topic, 1, 2, 3)
    path = topic.directory / "segments" / written.file
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="was altered"):
        verify(path, written)


def test_a_file_that_is_no_arrow_file_is_damage_from_any_row_on(topic: Topic) -> None:
    written = segment(topic, *range(100))
    path = topic.directory / "segments" / written.file
    path.write_bytes(b"x" * written.bytes)
    with pytest.raises(DamagedError, match="is no Arrow file"):
        next(read_rows(path, written, 50, 100))


def test_a_segment_that_promises_more_rows_than_it_has_is_damage(topic: Topic) -> None:
    written = segment(topic, 1, 2)
    path = topic.directory / "segments" / written.file
    more = Segment(file=written.file, rows=3, bytes=written.bytes, crc=written.crc)
    for look in (lambda: verify(path, more), lambda: list(read_rows(path, more, 0, 3))):
        with pytest.raises(DamagedError, match="has 2 rows, expected 3"):
            look()
