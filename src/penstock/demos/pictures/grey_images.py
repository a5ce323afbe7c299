"""Grey pictures in Arrow columns: raw bytes, one per pixel, row by row.

>>> import numpy as np
>>> column = to_arrow(np.arange(8, dtype=np.uint8).reshape(2, 2, 2))
>>> column.to_pylist()
[b'\\x00\\x01\\x02\\x03', b'\\x04\\x05\\x06\\x07']
>>> from_arrow(column[1:], side=2).tolist()
[[[4, 5], [6, 7]]]
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError

#: (picture, row, column) -> grey value
Pictures = NDArray[np.uint8]


def to_arrow(pictures: Pictures) -> pa.Array:
    """Return pictures as a binary column; no pixel is copied."""
    count, height, width = pictures.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(height * width)
    pixels = np.ascontiguousarray(pictures)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(pixels)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def from_arrow(column: pa.Array, side: int) -> Pictures:
    """Return square pictures of a binary column; no pixel is copied."""
    _, offsets, pixels = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset :][: len(column) + 1]
    if column.null_count or (np.diff(bounds) != side * side).any():
        raise InputError("picture", f"must have {side} x {side} bytes, one for each pixel")
    if not len(column):
        return np.empty((0, side, side), dtype=np.uint8)
    raw = np.frombuffer(pixels, dtype=np.uint8)[bounds[0] : bounds[-1]]
    return raw.reshape(-1, side, side)


def shrink(pictures: NDArray[np.generic], factor: int) -> NDArray[np.float32]:
    """Return smaller pictures: each pixel the mean of a square of factor x factor pixels."""
    count, height, width = pictures.shape
    squares = pictures.reshape(count, height // factor, factor, width // factor, factor)
    means: NDArray[np.float32] = squares.mean(axis=(2, 4), dtype=np.float32)
    return means
