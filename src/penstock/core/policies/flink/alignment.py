"""Parallelisms that divide partitions evenly."""


def align(wanted: int, current: int, partitions: int, highest: int, mode: str) -> int:
    """Return the parallelism at or above `wanted` that spreads partitions well.

    `evenly-spread` takes a divisor of the number of partitions, `balanced` also one that
    leaves fewer partitions to a replica; `off`, or none found, leaves `wanted` alone.

    >>> align(8, 4, 12, 200, "balanced"), align(8, 4, 128, 200, "balanced")
    (12, 8)
    >>> align(4, 10, 7, 200, "balanced")
    7
    """
    if mode == "off" or partitions < 1:
        return wanted
    limit = min(partitions, highest)
    if wanted < current:
        limit = min(current, limit)
    for candidate in range(wanted, limit + 1):
        if partitions % candidate == 0:
            return candidate
        if mode == "balanced" and partitions // candidate < partitions // wanted:
            return candidate
    return wanted
