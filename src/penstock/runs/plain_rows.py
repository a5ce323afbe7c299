"""Rows for who wants some: a number, a value, a key. The same number always gives the same row."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.pipelines import record_draws as draws
from penstock.topics.schema import parse_schema

SCHEMA = parse_schema("id long, value double, key long")
KEYS = 1000


def plain_rows(seed: int) -> Callable[[int, pa.Array], pa.Table]:
    """Return what makes rows: values are uniform from 0 to 1, all of a thousand keys as likely.

    >>> rows = plain_rows(seed=1)(7, pa.nulls(3))
    >>> rows.slice(1, 1) == plain_rows(seed=1)(8, pa.nulls(1))
    True
    """

    def make(first_id: int, due: pa.Array) -> pa.Table:
        ids = np.arange(first_id, first_id + len(due))
        values = draws.uniform(ids, f"value, seed {seed}")
        keys = draws.pick(ids, f"key, seed {seed}", KEYS)
        return pa.table([ids, values, keys], schema=SCHEMA)

    return make
