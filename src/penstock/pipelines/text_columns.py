"""Columns of text: joined, chosen and split with Arrow, whole columns at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from penstock.pipelines.record_draws import Indices

#: pyarrow.compute creates its functions at import, so type checkers do not see them.
pc: Any = pyarrow.compute


def word_list(text: str) -> tuple[str, ...]:
    """Split a text into words."""
    return tuple(text.split())


def join(*parts: pa.Array | str) -> pa.Array:
    """Concatenate columns and fixed texts, row by row.

    >>> join("<", pa.array(["a", "b"]), ">").to_pylist()
    ['<a>', '<b>']
    """
    return pc.binary_join_element_wise(*parts, "")


def choose(choices: Sequence[str], which: Indices) -> pa.Array:
    """Return the text of each index.

    >>> choose(["no", "yes"], np.array([1, 0, 1])).to_pylist()
    ['yes', 'no', 'yes']
    """
    return pa.array(choices, pa.string()).take(pa.array(which))


def words(texts: pa.Array) -> tuple[pa.Array, Indices]:
    """Return all words in lower case, one after the other, and which text each is from.

    >>> parts, row = words(pa.array(["Not today!", "", "we'll see"]))
    >>> parts.to_pylist(), row.tolist()
    (['not', 'today', "we'll", 'see'], [0, 0, 2, 2])
    """
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\pL\pN' ]+", " ")
    split = pc.utf8_split_whitespace(plain)
    parts, row = pc.list_flatten(split), pc.list_parent_indices(split)
    some = pc.not_equal(parts, "")
    return parts.filter(some), row.filter(some).to_numpy().astype(np.intp)
