"""Matches encrypted publications against half-spaces, compiled or with NumPy."""

import numpy as np

from penstock.pubsub.arrays import Doubles, Integers, Numbers, Singles
from penstock.pubsub.kernels.backend import Backend, default_backend
from penstock.pubsub.kernels.half_space_source import PAIR, load_kernel
from penstock.pubsub.kernels.half_spaces import HalfSpaces
from penstock.pubsub.kernels.match_lists import (
    MatchLists,
    concatenate_lists,
    find_offsets,
    group_pairs,
)

#: Publications in one call: enough to read tiles from memory once for many pairs.
BLOCK = 256
#: Boxes in one matrix product of the NumPy path; their products stay in the L2 cache.
_CHUNK = 1024
#: Matches of a call for which there is room at first, as a share of its pairs.
_FIRST_SHARE = 0.02


def match_points(spaces: HalfSpaces, points: Doubles, backend: Backend | None = None) -> MatchLists:
    """Return the subscriptions that match each publication, in the order of boxes."""
    match = _match_numba if (backend or default_backend()) is Backend.NUMBA else _match_numpy
    return concatenate_lists([match(spaces, block) for block in split_blocks(points)])


def split_blocks(points: Doubles) -> list[Doubles]:
    """Return publications in blocks of the size for one call of the kernel."""
    return [points[start : start + BLOCK] for start in range(0, len(points), BLOCK)]


def find_pairs(spaces: HalfSpaces, points: Doubles) -> tuple[Numbers, Numbers]:
    """Call the compiled kernel: publications and subscriptions that match, by tile."""
    kernel = load_kernel(spaces.size, spaces.tests.shape[1])
    # one type of array for the compiler, also for memory that cannot be written
    points, singles = np.array(points, np.float64, order="C"), _pad_points(points)
    room = int(_FIRST_SHARE * len(points) * len(spaces.owners)) + 1
    while True:
        publications, numbers = np.empty(room, np.uint32), np.empty(room, np.uint32)
        last = np.full(len(points), -1, np.int64)
        count = kernel(
            spaces.tiles,
            spaces.tests,
            spaces.owners,
            spaces.alive,
            singles,
            points,
            spaces.margin,
            last,
            publications,
            numbers,
        )
        if count <= room:
            return publications[:count], numbers[:count]
        room = count


def _match_numba(spaces: HalfSpaces, points: Doubles) -> MatchLists:
    return group_pairs(*find_pairs(spaces, points), len(points))


def _pad_points(points: Doubles) -> Singles:
    """Return publications in single precision, an even number of them."""
    singles = np.zeros((-(-len(points) // PAIR) * PAIR, points.shape[1]), np.float32)
    singles[: len(points)] = points
    return singles


def _match_numpy(spaces: HalfSpaces, points: Doubles) -> MatchLists:
    starts = range(0, len(spaces.owners), _CHUNK)
    chunks = [_find_chunk_pairs(spaces, points, start) for start in starts]
    pairs = np.concatenate([np.empty((2, 0), np.int64), *chunks], axis=1)
    publications, boxes = pairs[:, np.lexsort(pairs[::-1])]
    numbers = spaces.owners[boxes]
    # boxes of a subscription are neighbours
    is_first = np.ones(len(boxes), np.bool_)
    is_first[1:] = (publications[1:] != publications[:-1]) | (numbers[1:] != numbers[:-1])
    return MatchLists(
        offsets=find_offsets(publications[is_first], len(points)), numbers=numbers[is_first]
    )


def _find_chunk_pairs(spaces: HalfSpaces, points: Doubles, start: int) -> Integers:
    """Return publications and boxes of all matches of one chunk of boxes."""
    tests = spaces.tests[start : start + _CHUNK]
    singles = tests.astype(np.float32).reshape(-1, spaces.size)
    products = singles @ points.astype(np.float32).T
    low = products.reshape(*tests.shape[:2], len(points)).min(axis=1)
    alive = spaces.alive[start : start + _CHUNK, None]
    boxes, publications = np.nonzero((low > -spaces.margin) & alive)
    is_near = low[boxes, publications] <= spaces.margin
    near_tests, near_points = tests[boxes[is_near]], points[publications[is_near]]
    matches = ~is_near
    matches[is_near] = (np.einsum("pki,pi->pk", near_tests, near_points) > 0).all(axis=1)
    return np.stack([publications[matches], boxes[matches] + start])
