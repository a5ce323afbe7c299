"""The files of commits."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.topics.embedded.commit import Commit, read_commit, write_commit
from penstock.topics.embedded.segment import Segment

COMMIT = Commit(
    first=3,
    rows=5,
    writer="w",
    batch=7,
    at=1700000000.125,
    segments=(
        Segment(file="a.arrow", rows=2, bytes=100, crc=1),
        Segment(file="b.arrow", rows=3, bytes=50, crc=2),
    ),
    bytes_before=400,
    batches={"w": 7, "other": 2},
)


def test_sums_over_its_segments() -> None:
    assert (COMMIT.end, COMMIT.bytes) == (8, 150)


@given(st.floats(0, 1e11))
def test_written_and_read_back(at: float) -> None:
    commit = Commit.from_json(COMMIT.to_json() | {"at": at})
    assert read_commit(write_commit(commit)) == commit


@given(st.data())
def test_a_file_that_is_cut_or_altered_anywhere_is_refused(data: st.DataObject) -> None:
    content = write_commit(COMMIT).rstrip()
    place = data.draw(st.integers(0, len(content) - 1))
    changed = data.draw(st.integers(33, 126))
    altered = content[:place] + bytes([changed]) + content[place + 1 :]
    with pytest.raises(ValueError, match="cut short"):
        read_commit(content[:place])
    if changed != content[place]:
        with pytest.raises(ValueError, match=r"altered|cut short|cannot read version"):
            read_commit(altered)


def test_a_newer_version_is_refused_as_such() -> None:
    data = json.loads(write_commit(COMMIT)) | {"version": 2}
    with pytest.raises(ValueError, match="cannot read version 2, only 1"):
        read_commit(json.dumps(data).encode())
