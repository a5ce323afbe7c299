"""Values of plain publications as columns: a type, a number and a text for each attribute."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from penstock.pubsub.language.values import MISSING, NUMBERS, OTHER, Key

#: Types of values, in the order of keys.
CODES = (MISSING, OTHER, (2, 0.0), (2, 1.0))
NUMBER_CODE, TEXT_CODE = len(CODES), len(CODES) + 1


@lru_cache
def value_schema(attributes: int) -> pa.Schema:
    """Return the columns of plain publications."""
    fields = [("code", pa.uint8()), ("number", pa.float64()), ("text", pa.binary())]
    return pa.schema([(f"{name}_{i}", kind) for i in range(attributes) for name, kind in fields])


def make_value_columns(attributes: Sequence[Sequence[Key]]) -> pa.RecordBatch:
    """Return columns from the keys of every attribute."""
    columns = [column for keys in attributes for column in _make_columns(keys)]
    return pa.record_batch(columns, schema=value_schema(len(attributes)))


def encode_text(text: str) -> bytes:
    """Return bytes in the order of code points; JSON may have half a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def _make_columns(keys: Sequence[Key]) -> list[pa.Array]:
    codes = np.array([_find_code(key) for key in keys], np.uint8)
    numbers = [
        key[1] if code == NUMBER_CODE else 0.0 for key, code in zip(keys, codes, strict=True)
    ]
    texts = [
        encode_text(key[1]) if code == TEXT_CODE else None
        for key, code in zip(keys, codes, strict=True)
    ]
    return [pa.array(codes), pa.array(numbers, pa.float64()), pa.array(texts, pa.binary())]


def _find_code(key: Key) -> int:
    if key < NUMBERS:
        return CODES.index(key)
    return NUMBER_CODE if key[0] == NUMBERS[0] else TEXT_CODE
