"""Ranges of offsets: what a batch reads of every partition, cut into even shares. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, order=True)
class PartitionRange:
    """Offsets [start, end) of one partition. Offsets are not rows: some have none."""

    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """The number of offsets."""
        return self.end - self.start


#: What one task reads, in this order.
Share = tuple[PartitionRange, ...]


def list_ranges(start: Mapping[int, int], end: Mapping[int, int]) -> list[PartitionRange]:
    """Return the ranges between two positions, without empty ones, by partition.

    A partition that the start does not know is read from its first offset, 0.

    >>> list_ranges({0: 5, 1: 7}, {0: 9, 1: 7, 2: 3})
    [PartitionRange(partition=0, start=5, end=9), PartitionRange(partition=2, start=0, end=3)]
    """
    ranges = [PartitionRange(number, start.get(number, 0), end[number]) for number in sorted(end)]
    return [part for part in ranges if part.length > 0]


def cut_shares(ranges: Iterable[PartitionRange], count: int) -> tuple[Share, ...]:
    """Cut ranges into exactly `count` shares, in order, that differ by one offset at most.

    Shares may cut through a partition, so there may be more shares than partitions.

    >>> cut_shares([PartitionRange(0, 0, 3), PartitionRange(1, 10, 12)], 2)
    ((PartitionRange(partition=0, start=0, end=2),),
     (PartitionRange(partition=0, start=2, end=3), PartitionRange(partition=1, start=10, end=12)))
    """
    if count < 1:
        raise ValueError(f"shares: must be at least 1, got {count}")
    line = list(ranges)
    total = sum(part.length for part in line)
    cuts = [total * number // count for number in range(count + 1)]
    return tuple(_select(line, low, high) for low, high in pairwise(cuts))


def _select(line: Sequence[PartitionRange], low: int, high: int) -> Share:
    """Return the offsets from number `low` to `high` of all ranges in a row."""
    parts, passed = [], 0
    for part in line:
        first, last = max(low, passed) - passed, min(high, passed + part.length) - passed
        if last > first:
            parts.append(PartitionRange(part.partition, part.start + first, part.start + last))
        passed += part.length
    return tuple(parts)


def limit_ranges(ranges: Sequence[PartitionRange], most: int) -> list[PartitionRange]:
    """Shorten ranges to `most` offsets in all: one for each, the others in proportion.

    The first offset of each keeps a short range from waiting behind long ones for ever.

    >>> limit_ranges([PartitionRange(0, 0, 91), PartitionRange(1, 5, 15)], 12)
    [PartitionRange(partition=0, start=0, end=10), PartitionRange(partition=1, start=5, end=7)]
    """
    total = sum(part.length for part in ranges)
    if total <= most:
        return list(ranges)
    first = 1 if most >= len(ranges) else 0
    rest, wanted = total - first * len(ranges), most - first * len(ranges)
    limited, passed = [], 0
    for part in ranges:
        # rounding by running sums: the lengths add up to `most`
        before = passed * wanted // rest
        passed += part.length - first
        taken = first + passed * wanted // rest - before
        limited.append(PartitionRange(part.partition, part.start, part.start + taken))
    return [part for part in limited if part.length > 0]
