"""Versions: which state files there are after a batch, and which files nobody needs any more."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge, Version, file_names, next_version
from penstock.topics.embedded.segment import Segment

RECORDED = Path(__file__).parent.parent / "recorded" / "state-v1.json"


def state_file(file: str, slice: int, first: int = 0, at: int | None = None) -> StateFile:
    """A state file that is nowhere."""
    segment = Segment(file=file, rows=7, bytes=700, crc=1)
    return StateFile(segment=segment, slice=slice, first=first, batches=1, rows=7, bytes=60, at=at)


def test_new_runs_lie_on_top() -> None:
    version = next_version(
        Version(slices=4), [state_file("a", 0), state_file("a", 2, 1)], watermark=5
    )
    version = next_version(version, [state_file("b", 2)], watermark=6)
    assert version.of(0) == (state_file("a", 0),) and version.of(1) == ()
    assert version.of(2) == (state_file("b", 2), state_file("a", 2, 1))
    assert version.watermark == 6 and file_names(version) == {"a", "b"}


def test_merged_runs_are_replaced_below_the_new_ones() -> None:
    old = tuple(state_file(name, 0) for name in "dcba")
    version = Version(slices=1, state_files={0: old})
    merged = FileMerge(state_files=old[:2], into=state_file("m", 0))
    version = next_version(version, [state_file("e", 0)], [merged])
    assert [layer.file for layer in version.of(0)] == ["e", "m", "b", "a"]
    assert file_names(version) == {"e", "m", "b", "a"}


def test_a_slice_of_which_nothing_is_left() -> None:
    version = Version(slices=2, state_files={0: (state_file("a", 0),), 1: (state_file("a", 1, 1),)})
    version = next_version(version, [], [FileMerge(state_files=(state_file("a", 0),), into=None)])
    assert dict(version.state_files) == {1: (state_file("a", 1, 1),)}
    assert file_names(version) == {"a"}  # another slice still needs it


def test_runs_that_are_not_beside_each_other_cannot_have_been_merged() -> None:
    version = Version(slices=1, state_files={0: tuple(state_file(name, 0) for name in "cba")})
    for names in ("ca", "bc", "x"):
        merged = FileMerge(state_files=tuple(state_file(name, 0) for name in names), into=None)
        with pytest.raises(ValueError, match="slice 0 has no such state files in a row"):
            next_version(version, [], [merged])


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.lists(
            st.builds(
                state_file,
                st.sampled_from("abc"),
                st.just(0),
                st.integers(0, 5),
                st.none() | st.integers(-(2**60), 2**60),
            ),
            min_size=1,
            max_size=4,
        ),
    ),
    st.none() | st.integers(-(2**60), 2**60),
)
def test_a_version_is_json(state_files: dict[int, list[StateFile]], watermark: int | None) -> None:
    placed = {
        slice: tuple(state_file(old.file, slice, old.first, old.at) for old in some)
        for slice, some in state_files.items()
    }
    version = Version(slices=10, state_files=placed, watermark=watermark)
    assert Version.from_json(json.loads(json.dumps(version.to_json()))) == version


def test_format_1_is_read() -> None:
    data = json.loads(RECORDED.read_text())
    version = Version.from_json(data)
    assert (version.slices, version.watermark) == (4, 1_709_208_000_000_000)
    assert [(r.file, r.first, r.batches, r.rows, r.bytes, r.at) for r in version.of(3)] == [
        ("5b0c.arrow", 1, 1, 2, 96, 1_709_208_000_000_000),
        ("0f3a.arrow", 2, 3, 100_000, 4_800_000, None),
    ]
    assert version.of(3)[1].segment == Segment(
        file="0f3a.arrow", rows=180_000, bytes=8_650_000, crc=3_735_928_559
    )
    assert version.to_json() == data


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot read format 2 of a state, only 1"):
        Version.from_json({"format": 2})
