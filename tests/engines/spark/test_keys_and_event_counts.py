"""Keys fall to replicas alike everywhere; sketches keep counts and times."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.microbatch.event_counts import MAX_BINS, merge, sketch
from penstock.engines.spark.io.plans import assign_replicas, mask_key

STAMP = pa.timestamp("us", "UTC")


@given(st.lists(st.one_of(st.none(), st.text())), st.integers(1, 9))
def test_each_row_falls_to_one_replica(words: list[str | None], replicas: int) -> None:
    column = pa.array(words, pa.string())
    masks = [mask_key(column, index, replicas).to_pylist() for index in range(replicas)]
    assert [sum(row) for row in zip(*masks, strict=True)] == [1] * len(words)
    chosen = dict(zip(words, assign_replicas(column, replicas).tolist(), strict=True))
    assert assign_replicas(column, replicas).tolist() == [chosen[word] for word in words]


def test_numbers_spread_evenly() -> None:
    counts = np.bincount(assign_replicas(pa.array(range(70_000)), 7))
    assert counts.min() > 0.95 * counts.max()


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=400))
def test_a_sketch_counts_every_row_at_about_its_time(micros: list[int]) -> None:
    found = sketch(pa.array(micros, STAMP))
    assert sum(rows for _, rows in found) == len(micros)
    assert len(found) <= MAX_BINS + 1
    width = max(0.01, (max(micros) - min(micros) + 1) / 1e6 / MAX_BINS)
    mean = sum(second * rows for second, rows in found) / len(micros)
    assert mean == pytest.approx(sum(micros) / 1e6 / len(micros), abs=width)


def test_merging_loses_no_row() -> None:
    parts = [sketch(pa.array(range(n * 7, 10**8, 99_991), STAMP)) for n in range(5)]
    total = sum(rows for part in parts for _, rows in part)
    merged = merge(parts)
    assert sum(rows for _, rows in merged) == total
    assert len(merged) <= MAX_BINS
