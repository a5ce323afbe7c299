"""Shares of offsets: none missing, none twice, even within one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.topics.kafka.offset_ranges import (
    PartitionRange,
    cut_shares,
    limit_ranges,
    list_ranges,
)

#: Partitions with holes in front of them and between them, some of them empty.
POSITIONS = st.dictionaries(
    st.integers(0, 20), st.tuples(st.integers(0, 1000), st.integers(0, 50)), max_size=8
)
Positions = dict[int, tuple[int, int]]


def ranges_of(positions: Positions) -> list[PartitionRange]:
    start = {number: first for number, (first, _) in positions.items()}
    end = {number: first + length for number, (first, length) in positions.items()}
    return list_ranges(start, end)


def offsets_of(ranges: list[PartitionRange]) -> list[tuple[int, int]]:
    return [(part.partition, at) for part in ranges for at in range(part.start, part.end)]


@given(positions=POSITIONS, count=st.integers(1, 40))
def test_shares_are_even_and_complete(positions: Positions, count: int) -> None:
    shares = cut_shares(ranges_of(positions), count)
    assert len(shares) == count
    together = [offset for share in shares for offset in offsets_of(list(share))]
    # in order, so none is missing or twice
    assert together == offsets_of(ranges_of(positions))
    sizes = [sum(part.length for part in share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert all(part.length > 0 for share in shares for part in share)


@given(positions=POSITIONS, most=st.integers(0, 120))
def test_a_limit_is_kept_and_used(positions: Positions, most: int) -> None:
    ranges = ranges_of(positions)
    limited = limit_ranges(ranges, most)
    total = sum(part.length for part in ranges)
    assert sum(part.length for part in limited) == min(total, most)
    by_partition = {part.partition: part for part in ranges}
    for part in limited:
        whole = by_partition[part.partition]
        assert part.start == whole.start
        assert part.end <= whole.end
    if most >= len(ranges):
        assert {part.partition for part in limited} == set(by_partition)


def test_more_shares_than_offsets() -> None:
    shares = cut_shares([PartitionRange(3, 7, 9)], 4)
    assert [len(share) for share in shares] == [0, 1, 0, 1]


def test_a_partition_that_went_back_has_no_range() -> None:
    assert list_ranges({0: 9}, {0: 4}) == []


def test_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        cut_shares([], 0)
