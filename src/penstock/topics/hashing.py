"""Hashes keys and maps them to slices; the hash is the same in every process and every release.

Fixed-width values are one or more 64-bit words. Strings are cut into words of eight bytes; each
word is mixed with its place, and the sum of all is the word of the string. So nothing here loops
over rows. The words of a key are mixed one after the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_SEED = np.uint64(0x51CE_D57A_7E00_0001)
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
#: The word for null.
_NULL = np.uint64(0x0A11_0F17_15E4_0B0D)
_EMPTY = np.zeros(0, np.uint64)
#: Strings are hashed in blocks of this many, so that intermediate arrays stay in the cache.
_BLOCK = 1 << 14


def hash_keys(columns: Sequence[pa.Array]) -> Hashes:
    """Return one hash for each row of the key columns.

    >>> [f"{number:016x}" for number in hash_keys([pa.array([1, None]), pa.array(["a", "a"])])]
    ['0531456a982b5d23', '5a0ddf84e1112040']
    """
    total: Any = _SEED
    with np.errstate(over="ignore"):
        for column in columns:
            for word in words(column):
                if column.null_count:
                    word = np.where(nulls(column), _NULL, word)
                total = _mix(total * _ODD + word)
    return np.asarray(total, np.uint64)


def slice_of(hashes: Hashes, slices: int) -> NDArray[np.int64]:
    """Return the slice of each hash; slices are equal ranges of the hash."""
    high = (hashes >> np.uint64(32)) * np.uint64(slices)
    return (high >> np.uint64(32)).astype(np.int64)


def split(rows: pa.RecordBatch, hashes: Hashes, slices: int) -> dict[int, pa.RecordBatch]:
    """Return the rows of each non-empty slice, in their original order."""
    number = slice_of(hashes, slices)
    # small numbers are sorted by radix, which is many times faster
    order = np.argsort(number.astype(np.min_scalar_type(slices)), kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=slices))
    sorted_rows = rows.take(pa.array(order))
    return {
        index: sorted_rows.slice(start, end - start)
        for index, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
        if start < end
    }


def nulls(array: pa.Array) -> NDArray[np.bool_]:
    """Return which values are null."""
    mask: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def words(array: pa.Array) -> Sequence[Hashes]:
    """Return the values as 64-bit words; words of null values are undefined.

    Values of fixed width are equal if and only if their words are.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return words(array.dictionary_decode())
    if pa.types.is_boolean(kind):
        return words(array.cast(pa.uint8()))
    if not is_fixed(kind):
        blocks = range(0, len(array), _BLOCK)
        return [np.concatenate([_EMPTY, *(_text(array.slice(at, _BLOCK)) for at in blocks)])]
    if not len(array):
        return [_EMPTY]
    width = kind.bit_width // 8
    start = array.offset * width
    raw = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * width]
    if pa.types.is_floating(kind):
        # -0.0 and 0.0 are one key, and so are all NaNs
        numbers = raw.view(f"<f{width}").astype(np.float64) + 0.0
        return [np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)]
    if width > 8:
        return list(raw.view("<u8").reshape(len(array), width // 8).T)
    sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
    return [raw.view(f"<{sign}{width}").astype(np.int64, copy=False).view(np.uint64)]


def is_fixed(kind: pa.DataType) -> bool:
    """Whether values of this type have a fixed width and are compared by their words."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _text(array: pa.Array) -> Hashes:
    starts, ends, content = _bytes(array)
    lengths = ends - starts
    counts = np.maximum((lengths + 7) >> 3, 1)
    firsts = np.cumsum(counts) - counts
    # a word may begin at any byte, and the last one ends behind the string
    loads: Hashes = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))
    with np.errstate(over="ignore"):
        if counts.max() == 1:
            mixed = _mix(_cut(loads[starts], lengths) + _ODD)
        else:
            place = np.arange(counts.sum()) - np.repeat(firsts, counts)
            word = _cut(
                loads[np.repeat(starts, counts) + 8 * place], np.repeat(lengths, counts) - 8 * place
            )
            mixed = _mix(word + (place + 1).astype(np.uint64) * _ODD)
            mixed = np.add.reduceat(mixed, firsts)
        return mixed + lengths.astype(np.uint64)


def _bytes(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start and end of each string, and a padded copy of the content."""
    kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        width = "<i8"
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        width = "<i4"
    else:
        return _bytes(array.cast(pa.large_binary()))
    _, places, data = array.buffers()
    bounds = np.frombuffer(places, width)[array.offset : array.offset + len(array) + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    content = np.zeros(last - first + 8, np.uint8)
    if last > first:
        content[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    bounds = bounds.astype(np.int64) - first
    return bounds[:-1], bounds[1:], content


def _cut(loaded: Hashes, left: NDArray[np.int64]) -> Hashes:
    """Clear the bytes of each word beyond the end of its string."""
    bits = (8 * np.clip(8 - left, 0, 8)).astype(np.uint64)
    # a shift by all 64 bits is undefined: shift in two steps
    keep = (~np.uint64(0) >> (bits >> np.uint64(1))) >> (bits - (bits >> np.uint64(1)))
    return loaded & keep


def _mix(number: Hashes) -> Hashes:
    """Mix the bits, so that each depends on all others."""
    number = number ^ (number >> np.uint64(30))
    number *= _FIRST
    number ^= number >> np.uint64(27)
    number *= _SECOND
    number ^= number >> np.uint64(31)
    return number
