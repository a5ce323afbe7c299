"""Sessions by numbers alone: a row shows if its key is silent behind it for long enough."""

import numpy as np
from numpy.typing import NDArray

from penstock.workloads.piecewise import FloatArray


def expected_session_ends(
    due: FloatArray, counts: NDArray[np.int64], silent_s: float, new_keys: float, before: int
) -> FloatArray:
    """How many rows at each due time, in order, are expected to be the last of their session.

    Keys come evenly from all that there are, which each row makes a few more, also those before
    the first one here. The m-th row has the key of an earlier one with a chance of 1 / (keys m);
    from the n-th to the N-th none has it with the product of what is left, nearly
    (n / N) ** (1 / keys).
    """
    reached = before + np.cumsum(counts)
    followed = reached[np.searchsorted(due, due + silent_s, side="right") - 1]
    expected: FloatArray = counts * (reached / followed) ** (1 / new_keys)
    return expected
