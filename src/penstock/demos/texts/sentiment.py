"""Sentiment of texts: words that carry a feeling, and words that negate them.

>>> score(pa.array(["This is wonderful", "not bad at all", "a sad, terrible day"])).tolist()
[1.0, 0.5, -2.0]
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines.record_draws import Floats
from penstock.pipelines.text_columns import choose, pc, word_list, words

FEELINGS = ("for", "against", "neither")

_GLAD = word_list("wonderful great happy good love praise fine clever brilliant best proud worth")
_CROSS = word_list("disgrace terrible angry bad hate sad awful poor worst shame mess useless")
_TURNS = word_list("not never hardly no isn't wasn't don't")
#: A negated word ("not bad") is weaker than its opposite ("good").
_TURNED = -0.5


def score(texts: pa.Array) -> Floats:
    """Return the sentiment of each text: above 0 is for, below 0 against."""
    listed_words, row = words(texts)
    feeling = _among(listed_words, _GLAD).astype(float) - _among(listed_words, _CROSS)
    turns = _among(listed_words, _TURNS)
    turned = np.zeros(len(row), dtype=bool)
    for back in (1, 2):  # "not good", and "not a good"
        turned[back:] |= turns[:-back] & (row[back:] == row[:-back])
    weights = np.where(turned, _TURNED, 1) * feeling
    return np.bincount(row, weights, minlength=len(texts)).astype(np.float64)


def judge(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return whether each text is for, against or neither, and how strongly.

    >>> [column.to_pylist() for column in judge(pa.array(["never a good plan", "no news"]))]
    [['against', 'neither'], [0.5, 0.0]]
    """
    scores = score(texts)
    which = np.select([scores > 0, scores < 0], [0, 1], default=2)
    return choose(FEELINGS, which), pa.array(np.abs(scores))


def _among(texts: pa.Array, listed: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.is_in(
        texts, value_set=pa.array(listed)
    ).to_numpy(zero_copy_only=False)
    return inside
