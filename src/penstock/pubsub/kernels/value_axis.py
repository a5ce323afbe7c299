"""The axis of an attribute: all bounds that subscriptions ask for, in order.

A value is its position: the number of bounds that are not above it. So every comparison, of
numbers, texts or types, becomes a comparison of whole numbers.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Doubles, Positions
from penstock.pubsub.kernels.value_columns import CODES, NUMBER_CODE, TEXT_CODE, encode_text
from penstock.pubsub.language.values import END, MISSING, NUMBERS, TEXTS, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAxis:
    """The bounds of one attribute."""

    #: Positions of a missing value, of another type, of FALSE and of TRUE.
    fixed: Positions
    #: Position below all numbers, and the bounds among numbers.
    number_base: int
    numbers: Doubles
    #: Position below all texts, and the bounds among texts.
    text_base: int
    texts: tuple[bytes, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Possible positions."""
        return self.text_base + len(self.texts) + 1

    def find_positions(self, codes: pa.Array, numbers: pa.Array, texts: pa.Array) -> Positions:
        """Return the positions of a column of values."""
        kinds = codes.to_numpy()
        is_number = kinds == NUMBER_CODE
        positions = self._number_positions(numbers.to_numpy())
        if is_number.all():
            return positions
        others: Positions = np.where(
            is_number, positions, self.fixed[np.minimum(kinds, len(CODES) - 1)]
        )
        is_text = kinds == TEXT_CODE
        if is_text.any():
            others[is_text] = self._text_positions(texts.filter(pa.array(is_text)))
        return others

    def _number_positions(self, numbers: Doubles) -> Positions:
        # searches in ascending order take half the time: their branches are predicted
        order = np.argsort(numbers)
        positions = np.empty(len(numbers), np.int32)
        positions[order] = np.searchsorted(self.numbers, numbers[order], "right")
        positions += np.int32(self.number_base)
        return positions

    def _text_positions(self, texts: pa.Array) -> Positions:
        # a stream has few different texts
        encoded = texts.dictionary_encode()
        places = [bisect_right(self.texts, text) for text in encoded.dictionary.to_pylist()]
        positions = np.array(places, np.int32)[encoded.indices.to_numpy()]
        return np.asarray(positions + np.int32(self.text_base))


def rank_bounds(bounds: Iterable[Key]) -> dict[Key, int]:
    """Return the position of every bound, in ascending order.

    >>> rank_bounds([(3, 2.0), (0,), (3, 1.0)])
    {(0,): 0, (3, 1.0): 1, (3, 2.0): 2, (5,): 3}
    """
    inner = sorted({bound for bound in bounds if MISSING < bound < END})
    return {bound: position for position, bound in enumerate([MISSING, *inner, END])}


def make_axis(ranks: Mapping[Key, int]) -> ValueAxis:
    """Return the axis with ranked bounds."""
    inner = list(ranks)[1:-1]
    number_base, text_base = bisect_right(inner, NUMBERS), bisect_right(inner, TEXTS)
    # the bound between numbers and texts is above all numbers
    numbers = [bound[1] for bound in inner[number_base:text_base] if bound < TEXTS]
    return ValueAxis(
        fixed=np.array([bisect_right(inner, key) for key in CODES], np.int32),
        number_base=number_base,
        numbers=np.array(numbers, np.float64),
        text_base=text_base,
        texts=tuple(encode_text(bound[1]) for bound in inner[text_base:]),
    )


def number_axis(bounds: Doubles) -> ValueAxis:
    """Return the axis of an attribute that subscriptions compare with numbers only."""
    return ValueAxis(
        fixed=np.zeros(len(CODES), np.int32),
        number_base=0,
        numbers=bounds,
        text_base=len(bounds),
        texts=(),
    )
