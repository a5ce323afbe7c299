"""Sets of values of one attribute, as sorted ranges of keys."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.pubsub.language.values import END, MISSING, Key

#: From the first key to before the second.
KeyRange = tuple[Key, Key]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Disjoint ranges of keys in ascending order, none empty, none touching the next.

    >>> from penstock.pubsub.language.values import NUMBERS, TEXTS
    >>> numbers = make_set([(NUMBERS, TEXTS)])
    >>> (3, 2.0) in numbers, (3, 2.0) in ~numbers, numbers & ~numbers
    (True, False, ValueSet(ranges=()))
    """

    ranges: tuple[KeyRange, ...]

    def __contains__(self, key: Key) -> bool:
        place = bisect_right(self.ranges, key, key=lambda ends: ends[0]) - 1
        return place >= 0 and key < self.ranges[place][1]

    def __invert__(self) -> "ValueSet":
        bounds = [MISSING, *(bound for ends in self.ranges for bound in ends), END]
        pairs = zip(bounds[::2], bounds[1::2], strict=True)
        return ValueSet(tuple((low, high) for low, high in pairs if low < high))

    def __or__(self, other: "ValueSet") -> "ValueSet":
        return make_set([*self.ranges, *other.ranges])

    def __and__(self, other: "ValueSet") -> "ValueSet":
        return ~(~self | ~other)


def make_set(ranges: Iterable[KeyRange]) -> ValueSet:
    """Return the union of ranges in any order; empty ones are dropped."""
    joined: list[KeyRange] = []
    for low, high in sorted(ends for ends in ranges if ends[0] < ends[1]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return ValueSet(tuple(joined))


EVERYTHING = ValueSet(((MISSING, END),))
