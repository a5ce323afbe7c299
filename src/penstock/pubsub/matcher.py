"""Matchers: the function of operator M, without Spark and without keys."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import pyarrow as pa

from penstock.pubsub.arrays import Doubles
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.bitmap_index import BitmapIndex, build_index
from penstock.pubsub.kernels.bitmap_match import match_positions
from penstock.pubsub.kernels.half_space_match import match_points
from penstock.pubsub.kernels.half_spaces import HalfSpaces, build_half_spaces, decode_points
from penstock.pubsub.kernels.match_lists import join_lists
from penstock.pubsub.language.boxes import Box


class Matcher(Protocol):
    """Matches a block of publications against a block of subscriptions."""

    def match(self, publications: pa.RecordBatch) -> pa.ListArray:
        """Return the numbers of matching subscriptions, one list per publication."""

    def without(self, numbers: Collection[int]) -> Self:
        """Return the matcher with some subscriptions removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AspeMatcher:
    """Matches encrypted vectors; it holds no key and no value."""

    spaces: HalfSpaces
    backend: Backend | None = None

    def match(self, publications: pa.RecordBatch) -> pa.ListArray:
        """Return the numbers of matching subscriptions, one list per publication."""
        points = decode_points(publications, self.spaces.size)
        return match_points(self.spaces, points, self.backend).to_arrow()

    def without(self, numbers: Collection[int]) -> "AspeMatcher":
        """Return the matcher with some subscriptions removed."""
        return AspeMatcher(spaces=self.spaces.without(numbers), backend=self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainMatcher:
    """Matches plain values by a bitmap index."""

    index: BitmapIndex
    backend: Backend | None = None

    def match(self, publications: pa.RecordBatch) -> pa.ListArray:
        """Return the numbers of matching subscriptions, one list per publication."""
        positions = self.index.find_positions(publications)
        return match_positions(self.index, positions, self.backend).to_arrow()

    def without(self, numbers: Collection[int]) -> "PlainMatcher":
        """Return the matcher with some subscriptions removed."""
        return PlainMatcher(index=self.index.without(numbers), backend=self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedMatcher:
    """Matches a large block of subscriptions, and a small one that came later."""

    base: Matcher
    later: Matcher

    def match(self, publications: pa.RecordBatch) -> pa.ListArray:
        """Return the numbers of matching subscriptions, one list per publication."""
        return join_lists(self.base.match(publications), self.later.match(publications))

    def without(self, numbers: Collection[int]) -> "PatchedMatcher":
        """Return the matcher with some subscriptions removed."""
        return PatchedMatcher(base=self.base.without(numbers), later=self.later.without(numbers))


def build_aspe_matcher(
    subscriptions: Mapping[int, Doubles], attributes: int, backend: Backend | None = None
) -> AspeMatcher:
    """Return a matcher of encrypted subscriptions by number."""
    spaces = build_half_spaces(subscriptions, attributes)
    return AspeMatcher(spaces=spaces, backend=backend)


def build_plain_matcher(
    subscriptions: Mapping[int, Sequence[Box]],
    paths: Sequence[str],
    backend: Backend | None = None,
) -> PlainMatcher:
    """Return a matcher of plain subscriptions by number, for the attributes of a space."""
    return PlainMatcher(index=build_index(subscriptions, paths), backend=backend)
