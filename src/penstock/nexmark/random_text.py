"""Random texts: words drawn letter by letter, and parts of a pool of letters."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.nexmark.splitmix import Draws, Ints
from penstock.pipelines.text_columns import pc

_MIN_LETTERS = 3


def words(draws: Draws, size: int, gap: str = " ") -> pa.Array:
    """Draw words of at least three letters and less than `size`; one letter in 13 is a gap.

    Blanks at both ends are removed, so a word may be shorter, or empty.
    """
    sizes = _MIN_LETTERS + draws.below(size - _MIN_LETTERS)
    # letters behind the end are blank, and are trimmed
    letters = np.full((size - 1, len(draws)), ord(" "), np.uint8)
    for place in range(size - 1):
        rows = np.flatnonzero(sizes > place)
        is_gap = draws.below(13, rows) == 0
        letters[place, rows[is_gap]] = ord(gap)
        drawn = rows[~is_gap]
        letters[place, drawn] = ord("a") + draws.below(26, drawn)
    data = pa.py_buffer(np.ascontiguousarray(letters.T))
    wide = pa.Array.from_buffers(pa.binary(size - 1), len(draws), [None, data])
    return pc.ascii_trim(wide.cast(pa.string()), characters=" ")


def extras(draws: Draws, pool: NDArray[np.uint8], goal: int, held: int | Ints) -> pa.Array:
    """Draw a text that pads each event from `held` to about `goal` bytes.

    The text is a part of the pool; `held` is always smaller than `goal`.
    """
    room = np.broadcast_to(np.asarray(goal - held), len(draws))
    spread = np.floor(0.2 * room + 0.5).astype(np.int64)
    sizes = room - spread + draws.below(2 * spread)
    return parts(pool, draws.below(len(pool) - sizes), sizes)


def parts(pool: NDArray[np.uint8], begins: Ints, sizes: Ints) -> pa.Array:
    """Cut texts of 13 bytes or more out of a pool.

    >>> pool = np.frombuffer(b"the quick brown fox", np.uint8)
    >>> parts(pool, np.array([4, 0]), np.array([15, 13])).to_pylist()
    ['quick brown fox', 'the quick bro']
    """
    # Arrow's view of a longer text: its size, its first four bytes, a buffer, where it begins there
    views = np.zeros((len(begins), 4), np.int32)
    views[:, 0], views[:, 3] = sizes, begins
    views.view(np.uint8)[:, 4:8] = pool[begins[:, None] + np.arange(4)]
    buffers = [None, pa.py_buffer(views), pa.py_buffer(pool)]
    return pa.Array.from_buffers(pa.string_view(), len(begins), buffers).cast(pa.string())
