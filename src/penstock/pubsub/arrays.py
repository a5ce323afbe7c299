"""Types of the arrays that publish/subscribe uses, and columns of bytes as arrays."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def byte_offsets(contents: pa.BinaryArray) -> Positions:
    """Return where each value of a column of bytes begins in its data; one more than values.

    >>> byte_offsets(pa.array([b"ab", b"", b"c"]).slice(1)).tolist()
    [2, 2, 3]
    """
    bounds = np.frombuffer(contents.buffers()[1] or bytes(4), "<i4")
    return bounds[contents.offset : contents.offset + len(contents) + 1]


def byte_lengths(contents: pa.BinaryArray) -> Positions:
    """Return the length of each value of a column of bytes without nulls."""
    return np.diff(byte_offsets(contents))
