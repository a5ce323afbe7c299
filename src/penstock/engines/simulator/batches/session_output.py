"""Expected output of session windows, from row counts alone."""

import numpy as np
from numpy.typing import NDArray

from penstock.workloads.piecewise import FloatArray


def expected_session_ends(
    due: FloatArray, counts: NDArray[np.int64], silent_s: float, new_keys: float, before: int
) -> FloatArray:
    """Return how many rows at each due time are expected to be the last of their session.

    A row ends a session if its key does not occur again within `silent_s`. Due times are sorted;
    `before` rows came earlier. Keys are drawn uniformly from those known so far, and each row adds
    `new_keys` keys. So row m has a given key with probability 1 / (new_keys m), and none of the
    rows n+1 to N has it with probability of about (n / N) ** (1 / new_keys).
    """
    reached = before + np.cumsum(counts)
    reached_by_end = reached[np.searchsorted(due, due + silent_s, side="right") - 1]
    expected: FloatArray = counts * (reached / reached_by_end) ** (1 / new_keys)
    return expected
