"""Rounding that ignores float noise, and numbers formatted for people."""

import math

#: Far above the noise of a few float operations, far below any share of a replica that matters.
NOISE = 1e-9
#: The largest count; beyond it floats are not exact.
MAX_COUNT = 10**15
#: Bounds of measures and parameters, so that results neither overflow nor vanish.
MAX_SIZE, MIN_SIZE = 1e18, 1e-18


def ceil(value: float) -> int:
    """Round up, ignoring float noise, so that 3.0000000001 replicas are three.

    Infinite and very large values become `MAX_COUNT`.

    >>> ceil(0.1 * 30), ceil(3.01), ceil(math.inf) == MAX_COUNT
    (3, 4, True)
    """
    return math.ceil(min(max(value - NOISE, -MAX_COUNT), MAX_COUNT))


def floor(value: float) -> int:
    """Round down, ignoring float noise; infinite becomes `MAX_COUNT`.

    >>> floor(0.29 * 100), floor(2.99)
    (29, 2)
    """
    return math.floor(min(max(value + NOISE, -MAX_COUNT), MAX_COUNT))


def ratio(part: float, whole: float) -> float | None:
    """Divide two measures; None if the result is undefined or out of bounds.

    >>> ratio(1, 4), ratio(1, 0), ratio(1e300, 1e-300)
    (0.25, None, None)
    """
    if not whole:
        return None
    share = part / whole
    return share if part == 0 or MIN_SIZE <= abs(share) <= MAX_SIZE else None


def pretty(value: object) -> str:
    """Format a number for people: grouped thousands, four significant digits.

    >>> [pretty(v) for v in (1_000_000.0, 0.80000001, 12.3456, 5, None, float("inf"))]
    ['1,000,000', '0.8', '12.35', '5', 'unknown', 'infinite']
    """
    if value is None:
        return "unknown"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "unknown"
        if math.isinf(value):
            return "infinite" if value > 0 else "-infinite"
        if value == int(value) or abs(value) >= 10_000:
            return f"{value:,.0f}"
        return f"{value:.4g}"
    return f"{value:,}"


def table_number(value: float | None) -> str:
    """Write a figure as the evaluation thesis' tables do: below 1 three decimals, else one.

    Zero is a plain 0; a very small number is 0.000.

    >>> [table_number(v) for v in (0.12345, 68.31, 1234.5, 0.0, 0.0001, None)]
    ['0.123', '68.3', '1,234.5', '0', '0.000', '-']
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:,.1f}"
