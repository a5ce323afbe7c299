"""Matches plain publications against a bitmap index, compiled or with NumPy."""

from functools import lru_cache
from typing import Any

import numpy as np

from penstock.extras import import_optional
from penstock.pubsub.arrays import Flags, Integers, Numbers, Positions, Words
from penstock.pubsub.kernels.backend import Backend, default_backend
from penstock.pubsub.kernels.bitmap_index import WORD_BITS, BitmapIndex
from penstock.pubsub.kernels.match_lists import MatchLists, concatenate_lists, find_offsets

#: Publications in one call.
BLOCK = 256
#: Words that are combined at once; they stay in the L1 cache.
_CHUNK = 256
#: Matches of a call for which there is room at first, as a share of its pairs.
_FIRST_SHARE = 0.02
#: A product with this number has the place of a single bit in its upper six bits.
_DE_BRUIJN = 0x03F79D71B4CB0A89
_BIT_PLACES = np.zeros(WORD_BITS, np.uint8)
for _bit in range(WORD_BITS):
    _BIT_PLACES[((_DE_BRUIJN << _bit) % 2**64) >> 58] = _bit


def match_positions(
    index: BitmapIndex, positions: Positions, backend: Backend | None = None
) -> MatchLists:
    """Return the subscriptions that match each publication, in the order of boxes."""
    match = _match_numba if (backend or default_backend()) is Backend.NUMBA else _match_numpy
    blocks = [positions[start : start + BLOCK] for start in range(0, len(positions), BLOCK)]
    return concatenate_lists([match(index, block) for block in blocks])


def _match_numba(index: BitmapIndex, positions: Positions) -> MatchLists:
    kernel = load_bitmap_kernel()
    cells = index.find_cells(positions)
    room = int(_FIRST_SHARE * len(positions) * len(index.owners)) + 1
    while True:
        offsets = np.zeros(len(positions) + 1, np.int64)
        numbers = np.empty(room + WORD_BITS, np.uint32)
        count = kernel(
            index.possible,
            index.partial,
            index.alive,
            index.owners,
            index.starts,
            index.first,
            index.last,
            positions,
            cells,
            _BIT_PLACES,
            offsets,
            numbers,
        )
        if count <= room:
            return MatchLists(offsets=offsets, numbers=numbers[:count])
        room = count


def _match_numpy(index: BitmapIndex, positions: Positions) -> MatchLists:
    cells = index.find_cells(positions)
    attributes = range(len(index.axes))
    candidates = np.bitwise_and.reduce([index.possible[i, cells[:, i]] for i in attributes])
    candidates &= index.alive
    partial = np.bitwise_or.reduce([index.partial[i, cells[:, i]] for i in attributes])
    publications, boxes = np.nonzero(_unpack(candidates))
    matches = ~_unpack(partial)[publications, boxes]
    near = np.nonzero(~matches)[0]
    matches[near] = _verify(index, positions, publications[near], boxes[near])
    publications, boxes = publications[matches], boxes[matches]
    numbers = index.owners[boxes]
    is_first = np.ones(len(boxes), np.bool_)
    is_first[1:] = (publications[1:] != publications[:-1]) | (numbers[1:] != numbers[:-1])
    return MatchLists(
        offsets=find_offsets(publications[is_first], len(positions)), numbers=numbers[is_first]
    )


def _unpack(words: Words) -> Flags:
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(np.bool_)


def _verify(
    index: BitmapIndex, positions: Positions, publications: Integers, boxes: Integers
) -> Flags:
    """Whether each pair of a publication and a box matches."""
    matches = np.ones(len(boxes), np.bool_)
    for i, axis in enumerate(index.axes):
        starts = index.starts[i]
        inner = slice(starts[0], starts[-1])
        # ranges ascend within a box; adding the box makes them ascend over all boxes
        shifts = np.repeat(np.arange(len(index.owners)) * axis.size, np.diff(starts))
        values = positions[publications, i]
        wanted = values + boxes * axis.size
        place = np.searchsorted(index.first[inner] + shifts, wanted, "right") - 1 + starts[0]
        matches &= (place >= starts[boxes]) & (index.last[place] >= values)
    return matches


@lru_cache(maxsize=1)
def load_bitmap_kernel() -> Any:
    """Compile the kernel at its first call, which takes seconds; later calls are free."""
    return import_optional("numba", "matching kernel").njit(nogil=True)(_match_bitmaps)


def _match_bitmaps(
    possible: Words,
    partial: Words,
    alive: Words,
    owners: Numbers,
    starts: Integers,
    first: Positions,
    last: Positions,
    positions: Positions,
    cells: Positions,
    bit_places: Any,
    offsets: Integers,
    numbers: Numbers,
) -> int:
    """Write matching numbers for each publication; returns how many there are.

    Numbers are written while at least 64 more fit, so that no match has to ask for room.
    """
    count = 0
    words, busy = np.empty(_CHUNK, np.uint64), np.empty(_CHUNK, np.int64)
    unit, multiplier = np.uint64(1), np.uint64(_DE_BRUIJN)
    room = numbers.shape[0] - WORD_BITS
    for p in range(positions.shape[0]):
        previous = np.int64(-1)
        for start in range(0, alive.shape[0], _CHUNK):
            size = min(_CHUNK, alive.shape[0] - start)
            for w in range(size):
                words[w] = alive[start + w]
            for i in range(cells.shape[1]):
                row = possible[i, cells[p, i], start : start + size]
                for w in range(size):
                    words[w] &= row[w]
            # without a branch: whether a word has candidates cannot be predicted
            busy_count = 0
            for w in range(size):
                busy[busy_count] = w
                busy_count += words[w] != 0
            for k in range(busy_count):
                w = busy[k]
                candidates = words[w]
                for i in range(cells.shape[1]):
                    near = candidates & partial[i, cells[p, i], start + w]
                    while near != 0:
                        bit = near & (~near + unit)
                        near ^= bit
                        box = (start + w) * 64 + bit_places[(bit * multiplier) >> np.uint64(58)]
                        is_inside = False
                        for r in range(starts[i, box], starts[i, box + 1]):
                            if first[r] <= positions[p, i] <= last[r]:
                                is_inside = True
                                break
                        if not is_inside:
                            candidates ^= bit
                is_written = count <= room
                while candidates != 0:
                    bit = candidates & (~candidates + unit)
                    candidates ^= bit
                    box = (start + w) * 64 + bit_places[(bit * multiplier) >> np.uint64(58)]
                    owner = owners[box]
                    if is_written:
                        numbers[count] = owner
                    # boxes of a subscription are neighbours: its next one is written over it
                    count += np.int64(owner) != previous
                    previous = np.int64(owner)
        offsets[p + 1] = count
    return count
