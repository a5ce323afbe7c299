"""The limit of arithmetic: floating-point operations of this machine, in single precision."""

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.extras import import_optional

#: Independent sums of a lane, enough to hide the latency of a multiply-add; multiply-adds of each.
CHAINS, DEPTH = 12, 16
_LANES, _ROUNDS = 1024, 1500
_MATRIX_SIZE = 2048


def make_chain_call() -> tuple[Callable[[], object], int]:
    """Return a call of multiply-adds in registers, and its floating-point operations.

    It has the vectors that the compiler uses for kernels, and loads next to nothing.
    """
    chain, half = compile_chain(), np.float32(0.5)
    operations = 2 * CHAINS * DEPTH * _LANES * _ROUNDS
    return lambda: chain(np.ones(_LANES, np.float32), half, half, _ROUNDS), operations


def compile_chain() -> Any:
    """Return the compiled loop."""
    names: dict[str, Any] = {"np": np}
    exec(write_chain_source(), names)
    # multiply and add may be fused, but sums must not be reordered: little would be left of them
    options = {"nogil": True, "fastmath": {"contract"}}
    chain = import_optional("numba", "limit of arithmetic").njit(**options)(names["chain"])
    chain(np.ones(1, np.float32), np.float32(0), np.float32(0), 1)
    return chain


def make_product_call() -> tuple[Callable[[], object], int]:
    """Return a call of a large matrix product, and its floating-point operations."""
    shape = (_MATRIX_SIZE, _MATRIX_SIZE)
    matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return lambda: matrix @ matrix, 2 * _MATRIX_SIZE**3


def write_chain_source() -> str:
    """Return the source: each lane is loaded once and stored once for all its multiply-adds."""
    sums = range(CHAINS)
    lines = [f"a{c} = v + x * np.float32({c})" for c in sums]
    lines += [f"a{c} = a{c} * x + y" for _ in range(DEPTH) for c in sums]
    lines.append(f"values[j] = {' + '.join(f'a{c}' for c in sums)}")
    body = "\n".join(f"            {line}" for line in lines)
    return f"""\
def chain(values, x, y, rounds):
    for _ in range(rounds):
        for j in range(values.shape[0]):
            v = values[j]
{body}
"""
