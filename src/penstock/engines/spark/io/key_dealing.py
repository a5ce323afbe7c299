"""Which of k replicas a key falls to: the same in every process, and quick for whole columns."""

from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


def key_mask(column: pa.Array, index: int, replicas: int) -> pa.Array:
    """Return which rows belong to replica `index` of `replicas`."""
    return pa.array(replica_of(column, replicas) == index)


def replica_of(column: pa.Array, replicas: int) -> NDArray[np.int64]:
    """Return the replica of each row; a missing key falls to replica 0.

    >>> replica_of(pa.array(["a", "b", "a", None]), 4).tolist()
    [3, 1, 3, 0]
    """
    if pa.types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
        hashed = (values * _MIX) >> _SHIFT
    else:
        encoded = column.dictionary_encode()
        each = [0 if v is None else crc32(str(v).encode()) for v in encoded.dictionary.to_pylist()]
        table = np.array([*each, 0], dtype=np.uint64)
        places = encoded.indices.fill_null(len(each)).to_numpy(zero_copy_only=False)
        hashed = table[places]
    chosen: NDArray[np.int64] = (hashed % np.uint64(replicas)).astype(np.int64)
    return chosen
