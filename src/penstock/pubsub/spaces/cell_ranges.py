"""Turns a set of values into ranges of cells of a grid."""

import hashlib
import hmac
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.pubsub.language.value_set import KeyRange, ValueSet
from penstock.pubsub.language.values import END, MISSING, NUMBERS, TEXTS, Key, next_key
from penstock.pubsub.spaces.grid import NumberGrid

#: First and last cell.
CellRange = tuple[int, int]
_HASH_BYTES = 4
_TEXT_CELLS = 1 + 2**32


@dataclass(frozen=True, slots=True)
class NumberAxis:
    """A number of an encrypted space."""

    path: str
    grid: NumberGrid

    @property
    def cells(self) -> int:
        """Cells including the one for a missing attribute."""
        return self.grid.cells

    def find_cell(self, key: Key) -> int:
        """Return the cell of a value."""
        if key == MISSING:
            return 0
        if key[0] != NUMBERS[0]:
            raise InputError(self.path, "must be a finite number in this space")
        try:
            return self.grid.find_cell(key[1])
        except InputError as error:
            raise error.under(self.path) from None

    def find_ranges(self, values: ValueSet) -> list[CellRange]:
        """Return the cells whose values are in a set."""
        pairs = ((self._first_cell(low), self._first_cell(high) - 1) for low, high in values.ranges)
        return _join([(first, last) for first, last in pairs if first <= last])

    def _first_cell(self, bound: Key) -> int:
        """Return the first cell that is not below a bound."""
        if bound <= NUMBERS:
            return 0 if bound <= MISSING else 1
        return self.cells if bound >= TEXTS else self.grid.find_first_cell(float(bound[1]))


@dataclass(frozen=True, slots=True)
class TextAxis:
    """A text of an encrypted space: its cell is a keyed hash."""

    path: str
    secret: bytes

    @property
    def cells(self) -> int:
        """Cells including the one for a missing attribute."""
        return _TEXT_CELLS

    def find_cell(self, key: Key) -> int:
        """Return the cell of a value."""
        if key == MISSING:
            return 0
        if key[0] != TEXTS[0]:
            raise InputError(self.path, "must be a text in this space")
        message = f"{self.path}\0{key[1]}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self.secret, message, hashlib.sha256)
        return 1 + int.from_bytes(digest[-_HASH_BYTES:], "big")

    def find_ranges(self, values: ValueSet) -> list[CellRange]:
        """Return the cells of a set of single texts, of all texts, or of a missing one."""
        ranges = [(0, 0)] if MISSING in values else []
        texts = values & ValueSet(((TEXTS, END),))
        return _join(ranges + [self._text_range(ends) for ends in texts.ranges])

    def _text_range(self, ends: KeyRange) -> CellRange:
        if ends == (TEXTS, END):
            return 1, self.cells - 1
        # with "all but some" a collision of hashes would lose a notification
        if len(ends[0]) != 2 or next_key(ends[0]) != ends[1]:
            hint = "LIKE, != and NOT of a text work in plain spaces only"
            raise InputError(self.path, "an encrypted text has only =, IN and EXISTS", hint)
        cell = self.find_cell(ends[0])
        return cell, cell


Axis = NumberAxis | TextAxis


def _join(ranges: list[CellRange]) -> list[CellRange]:
    """Sort ranges and join those that touch."""
    joined: list[CellRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
