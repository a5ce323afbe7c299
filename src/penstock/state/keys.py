"""Compares keys: rows are found by hash, and several keys may share a hash."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from penstock.topics.hashing import Hashes, is_fixed, nulls, words

#: pyarrow.compute creates its functions at import, so type checkers do not see them.
pc: Any = pyarrow.compute

Places = NDArray[np.int64]
Columns = Sequence[pa.Array]


def same_keys(left: Columns, right: Columns) -> NDArray[np.bool_]:
    """Return for each row whether both sides have the same key; null is a key like any other."""
    same = np.ones(len(left[0]), np.bool_)
    for left_column, right_column in zip(left, right, strict=True):
        same &= _same(left_column, right_column)
    return same


def winners(hashes: Hashes, keys: Columns, *, last: bool) -> Places:
    """Return one row for each key, the first or the last it has, in the order of the hash."""
    if len(hashes) < 2 or (hashes[1:] > hashes[:-1]).all():
        return np.arange(len(hashes))
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    repeats = ordered[1:] == ordered[:-1]
    if not repeats.any():
        return order
    pairs = np.flatnonzero(repeats)
    if not same_keys(take_all(keys, order[pairs]), take_all(keys, order[pairs + 1])).all():
        order, repeats = _by_key(hashes, keys)
    ends = np.ones(len(order), np.bool_)
    if last:
        ends[:-1] = ~repeats
    else:
        ends[1:] = ~repeats
    return order[ends]


def take_all(columns: Columns, places: Places) -> list[pa.Array]:
    """Return these rows of every column."""
    wanted = pa.array(places)
    return [column.take(wanted) for column in columns]


def _by_key(hashes: Hashes, keys: Columns) -> tuple[Places, NDArray[np.bool_]]:
    """Sort rows by hash and key; return the order and which rows repeat the key before."""
    parts = [hashes, *(part for column in keys for part in _codes(column))]
    order = np.lexsort(parts[::-1])
    repeats = np.ones(max(len(order) - 1, 0), np.bool_)
    for part in parts:
        repeats &= part[order][1:] == part[order][:-1]
    return order, repeats


def _same(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    if is_fixed(left.type):
        same = np.ones(len(left), np.bool_)
        for left_word, right_word in zip(words(left), words(right), strict=True):
            same &= left_word == right_word
    else:
        same = pc.equal(left, right).fill_null(False).to_numpy(zero_copy_only=False)
    if left.null_count or right.null_count:
        left_null, right_null = nulls(left), nulls(right)
        same = np.where(left_null | right_null, left_null & right_null, same)
    return same


def _codes(column: pa.Array) -> Sequence[NDArray[np.uint64]]:
    """Return integers that are equal where the values are equal."""
    if not is_fixed(column.type):
        codes = column.dictionary_encode(null_encoding="encode").indices
        return [codes.to_numpy(zero_copy_only=False).astype(np.uint64)]
    if not column.null_count:
        return words(column)
    empty = nulls(column)
    return [empty.astype(np.uint64), *(np.where(empty, 0, word) for word in words(column))]
