"""How the queries of one application share its executors. Pure.

Every query may use every executor. The share of a query is what it needs; a policy decides about
shares, and the executors follow from their sum.
"""

import math
from collections.abc import Mapping

from penstock.core.numbers import NOISE

#: The busy share of an executor that several small queries may reach together.
_FULL = 0.8


def split_executors(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Split executors in proportion to weights; each query gets one at least.

    >>> split_executors(5, {"words": 3, "clicks": 1})
    {'words': 4, 'clicks': 1}
    >>> split_executors(1, {"words": 3, "clicks": 1})
    {'words': 1, 'clicks': 1}
    """
    if not weights:
        return {}
    whole = sum(weights.values())
    exact = {
        name: total * (weight / whole if whole > 0 else 1 / len(weights))
        for name, weight in weights.items()
    }
    shares = {name: max(1, int(share + NOISE)) for name, share in exact.items()}
    by_rest = sorted(exact, key=lambda name: shares[name] - exact[name])
    for name in by_rest[: max(0, total - sum(shares.values()))]:
        shares[name] += 1
    return shares


def count_executors(shares: Mapping[str, int], busy: Mapping[str, float]) -> tuple[int, int]:
    """Return the fewest and the most executors that all shares may need together.

    A query whose share is one executor needs only the part that it is busy, so several small
    queries fit on one executor. While that part is unknown, it may be nothing or all.

    >>> count_executors({"words": 3, "clicks": 1, "logs": 1}, {"clicks": 0.2, "logs": 0.3})
    (4, 4)
    >>> count_executors({"clicks": 1, "logs": 1}, {"clicks": 0.2})
    (1, 2)
    """
    large = sum(share for share in shares.values() if share > 1)
    small = [name for name, share in shares.items() if share <= 1]
    known = sum(min(1.0, busy[name] / _FULL) for name in small if name in busy)
    unknown = sum(name not in busy for name in small)
    fewest, most = (math.ceil(parts - NOISE) for parts in (known, known + unknown))
    return max(1, large + fewest), max(1, large + most)


def describe_needs(shares: Mapping[str, int]) -> str:
    """Name the queries that need executors, the largest need first.

    >>> describe_needs({"clicks": 1, "words": 3})
    'words 3, clicks 1'
    """
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share}" for name, share in ordered)
