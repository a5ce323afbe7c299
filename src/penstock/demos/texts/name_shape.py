"""The shape of DNS names: measures that distinguish generated names from ordinary ones."""

from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.demos.texts import lookups
from penstock.extras import import_optional
from penstock.pipelines import record_draws as draws

#: The measures of a name.
MEASURES = ("length", "labels", "longest", "entropy", "digits", "vowels")
#: What a name is made of; "?" stands for everything else.
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789-.?"
_DOT = _SIGNS.index(".")
_DIGITS = [_SIGNS.index(sign) for sign in "0123456789"]
_VOWELS = [_SIGNS.index(sign) for sign in "aeiou"]
_TRAINED_ON = 5000


class Tree(Protocol):
    """The used interface of a decision tree of scikit-learn."""

    def predict_proba(self, measures: draws.Floats, /) -> draws.Floats:
        """Return the probability of each kind for each row of measures."""
        ...


def measure(names: pa.Array) -> dict[str, draws.Floats]:
    """Return all measures of each name.

    Length is in letters, as is that of the longest label (the parts between dots); entropy is
    that of the letters in bits; digits and vowels are shares of the length.

    >>> {name: round(float(value[0]), 2) for name, value in measure(pa.array(["ab.aa1"])).items()}
    {'length': 6.0, 'labels': 2.0, 'longest': 3.0, 'entropy': 1.79, 'digits': 0.17, 'vowels': 0.5}
    """
    signs, row = _signs(names)
    counts = np.bincount(row * len(_SIGNS) + signs, minlength=len(names) * len(_SIGNS))
    counts = counts.reshape(-1, len(_SIGNS))
    length = counts.sum(axis=1)
    shares = counts / length[:, None]
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return {
        "length": length.astype(float),
        "labels": counts[:, _DOT] + 1.0,
        "longest": _longest(signs == _DOT, row, len(names)),
        "entropy": -(shares * logs).sum(axis=1),
        "digits": shares[:, _DIGITS].sum(axis=1),
        "vowels": shares[:, _VOWELS].sum(axis=1),
    }


@cache
def train_classifier() -> Tree:
    """Train a tree on lookups that no record makes; a process does it once."""
    ids = draws.TRAINING + np.arange(_TRAINED_ON)
    measures = measure(lookups.names(ids))
    classifier = import_optional("sklearn.tree", "this demo").DecisionTreeClassifier
    tree = classifier(max_depth=5, min_samples_leaf=10, random_state=0)
    trained: Tree = tree.fit(as_matrix(measures), lookups.kinds(ids))
    return trained


def as_matrix(measures: dict[str, draws.Floats]) -> draws.Floats:
    """Return one row of measures for each name, as the tree takes them."""
    return np.column_stack([measures[name] for name in MEASURES])


def _signs(names: pa.Array) -> tuple[NDArray[np.uint8], draws.Indices]:
    """Return the signs of all names, one after the other, and which name each is from."""
    if not len(names):
        return np.empty(0, np.uint8), np.empty(0, np.intp)
    _, offsets, data = names.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[names.offset :][: len(names) + 1]
    letters = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]]
    return _SIGN_OF[letters], np.repeat(np.arange(len(names)), np.diff(bounds))


def _longest(dot: NDArray[np.bool_], row: draws.Indices, names: int) -> draws.Floats:
    """Return the length of the longest label of each name."""
    begins = np.diff(row, prepend=-1) > 0
    begins[1:] |= dot[:-1]
    sizes = np.bincount((np.cumsum(begins) - 1)[~dot], minlength=int(begins.sum()))
    longest = np.zeros(names)
    np.maximum.at(longest, row[begins], sizes)
    return longest


def _sign_of() -> NDArray[np.uint8]:
    """Return the index of the sign of each byte; capital letters count as small ones."""
    table = np.full(256, _SIGNS.index("?"), dtype=np.uint8)
    for place, sign in enumerate(_SIGNS):
        table[[ord(sign), ord(sign.upper())]] = place
    return table


_SIGN_OF = _sign_of()
