"""Generates and compiles the kernel for half-spaces, for one size of vectors and boxes.

Products are written out, so that the compiler keeps a publication in registers and turns the
loop over 64 lanes into vector instructions. Two publications share each load of a tile: loads
limit a kernel with one. Loops with more than four tests are not vectorised.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.extras import import_optional
from penstock.pubsub.arrays import Doubles
from penstock.pubsub.kernels.half_spaces import LANES

#: Publications that share the loads of a tile.
PAIR = 2
#: Tests in one loop.
GROUP = 4

_HEAD = f"""\
def match(tiles, tests, owners, alive, points32, points, margin, last, publications, numbers):
    pair_count = 0
    low = np.empty(({PAIR}, {LANES}), np.float32)
    flags = np.empty(({PAIR}, {LANES}), np.uint8)
    words = flags.view(np.uint64)
    for t in range(tiles.shape[0]):
        tile = tiles[t]
        lanes = min({LANES}, owners.shape[0] - t * {LANES})
        for first in range(0, points.shape[0], {PAIR}):
"""
_TAIL = f"""\
            for b in range(min({PAIR}, points.shape[0] - first)):
                p = first + b
                for w in range({LANES // 8}):
                    if words[b, w] == 0:
                        continue
                    for lane in range(w * 8, min(w * 8 + 8, lanes)):
                        box = t * {LANES} + lane
                        if flags[b, lane] == 0 or not alive[box] or last[p] == owners[box]:
                            continue
                        if low[b, lane] > margin or decide(tests[box], points[p]):
                            last[p] = owners[box]
                            if pair_count < numbers.shape[0]:
                                publications[pair_count] = p
                                numbers[pair_count] = owners[box]
                            pair_count += 1
    return pair_count
"""


def decide(tests: Doubles, point: Doubles) -> bool:
    """Whether all products are positive, in double precision."""
    for k in range(tests.shape[0]):
        product = 0.0
        for i in range(tests.shape[1]):
            product += tests[k, i] * point[i]
        if product <= 0.0:
            return False
    return True


def write_source(size: int, test_count: int) -> str:
    """Return the source of the kernel for vectors of a size and boxes of so many tests."""
    indent = " " * 12
    lines = [
        f"{indent}c{b}_{i} = points32[first + {b}, {i}]" for b in range(PAIR) for i in range(size)
    ]
    for start in range(0, test_count, GROUP):
        tests = range(start, min(start + GROUP, test_count))
        lines.append(f"{indent}for j in range({LANES}):")
        lines += [f"{indent}    {line}" for line in _write_loop(tests, size)]
        is_last = tests.stop == test_count
        lines += [f"{indent}    {line}" for line in _write_minimum(start == 0, is_last)]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _write_loop(tests: range, size: int) -> Iterator[str]:
    """Write the products of a group of tests, and their minimum for each publication."""
    for test in tests:
        for i in range(size):
            yield f"x = tile[{test}, {i}, j]"
            sign = "+=" if i else "="
            yield from (f"v{b} {sign} x * c{b}_{i}" for b in range(PAIR))
        for b in range(PAIR):
            minimum = f"m{b} if m{b} < v{b} else v{b}" if test > tests.start else f"v{b}"
            yield f"m{b} = {minimum}"


def _write_minimum(is_first: bool, is_last: bool) -> Iterator[str]:
    """Write how the minimum goes from group to group, and the flags of the last group."""
    for b in range(PAIR):
        if not is_first:
            yield f"m{b} = m{b} if m{b} < low[{b}, j] else low[{b}, j]"
        yield f"low[{b}, j] = m{b}"
        if is_last:
            yield f"flags[{b}, j] = m{b} > -margin"


@lru_cache(maxsize=8)
def load_kernel(size: int, test_count: int) -> Any:
    """Compile the kernel at its first call, which takes seconds; later calls are free."""
    numba = import_optional("numba", "matching kernel")
    names: dict[str, Any] = {"np": np, "decide": numba.njit(nogil=True)(decide)}
    exec(write_source(size, test_count), names)
    # sums may be reordered: the margin holds for any order
    return numba.njit(nogil=True, fastmath=True)(names["match"])
