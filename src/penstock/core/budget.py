"""Fits demands into a budget by largest remainder, exactly."""

from collections.abc import Mapping

from penstock.errors import InputError


def fit(demands: Mapping[str, int], budget: int) -> dict[str, int]:
    """Return demands whose sum is at most `budget`, none below 1, in the same order of size.

    d' = 1 + k (d - 1) with k = (budget - n) / (sum d - n): every operator keeps one replica
    and the rest shrinks in proportion. Replicas that rounding leaves over go to the largest
    remainders, and to the first operator of a tie, so that the sum is exactly the budget.
    Whole numbers throughout: no float can tip a tie.

    >>> fit({"a": 10, "b": 30, "c": 20}, 30)
    {'a': 5, 'b': 15, 'c': 10}
    >>> fit({"a": 3, "b": 3, "c": 3, "d": 3}, 10)
    {'a': 3, 'b': 3, 'c': 2, 'd': 2}
    """
    n, total = len(demands), sum(demands.values())
    if budget < n:
        problem = f"{budget} cannot give each of {n} operators a replica"
        raise InputError("budget", problem, f"at least {n} is needed here")
    if total <= budget:
        return dict(demands)
    shares = {name: divmod((budget - n) * (d - 1), total - n) for name, d in demands.items()}
    fitted = {name: 1 + whole for name, (whole, _) in shares.items()}
    by_remainder = sorted(shares, key=lambda name: -shares[name][1])  # stable: ties keep order
    for name in by_remainder[: budget - sum(fitted.values())]:
        fitted[name] += 1
    return fitted
