"""Columns of text: joined, chosen and split with Arrow, no row by itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from penstock.pipelines.record_draws import Indices

#: Arrow makes its functions when it is imported, where no type checker sees them.
pc: Any = pyarrow.compute


def word_list(text: str) -> tuple[str, ...]:
    """Split words that are written one behind the other, as they are easiest to read."""
    return tuple(text.split())


def join(*parts: pa.Array | str) -> pa.Array:
    """Write columns and fixed pieces of text one behind the other.

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
    """Return all words in small letters, one after the other, and which text each is from.

    >>> found, row = words(pa.array(["Not today!", "", "we'll see"]))
    >>> found.to_pylist(), row.tolist()
    (['not', 'today', "we'll", 'see'], [0, 0, 2, 2])
    """
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\pL\pN' ]+", " ")
    split = pc.utf8_split_whitespace(plain)
    found, row = pc.list_flatten(split), pc.list_parent_indices(split)
    some = pc.not_equal(found, "")
    return found.filter(some), row.filter(some).to_numpy().astype(np.intp)
