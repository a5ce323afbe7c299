"""Lookups are made again by number; names are measured as one would by hand."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.demos.texts import lookups, name_shape
from penstock.errors import InputError

NAMES = st.lists(st.text("abcxyz019-.Q_", min_size=1, max_size=30), max_size=10)


def due(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) * 1000, pa.timestamp("us", tz="UTC"))


def by_hand(name: str) -> dict[str, float]:
    """All measures of one name in plain Python."""
    plain = name.lower()
    shares = [count / len(plain) for count in Counter(plain).values()]
    return {
        "length": len(plain),
        "labels": len(plain.split(".")),
        "longest": max(map(len, plain.split("."))),
        "entropy": -sum(share * math.log2(share) for share in shares),
        "digits": sum(sign.isdigit() for sign in plain) / len(plain),
        "vowels": sum(sign in "aeiou" for sign in plain) / len(plain),
    }


@given(NAMES, st.integers(0, 3))
def test_measures_are_those_made_by_hand(names: list[str], skipped: int) -> None:
    column = pa.array(names, pa.string())[skipped:]
    measures = name_shape.measure(column)
    assert tuple(measures) == name_shape.MEASURES
    for place, name in enumerate(names[skipped:]):
        found = {measure: values[place] for measure, values in measures.items()}
        assert found == pytest.approx(by_hand(name))


def test_any_lookup_is_made_again_by_itself() -> None:
    whole = lookups.lookups(0, due(500))
    for first, end in ((0, 1), (137, 400), (499, 500)):
        assert lookups.lookups(first, due(end - first)).equals(whole.slice(first, end - first))


def test_names_are_those_of_their_kind() -> None:
    ids = np.arange(3000)
    longest = {"ordinary": 0, "generated": 0, "tunnel": 0}
    for name, kind in zip(lookups.names(ids).to_pylist(), lookups.kinds(ids), strict=True):
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.")
        of = lookups.KINDS[kind]
        longest[of] = max(longest[of], max(map(len, name.split("."))))
    assert longest["ordinary"] <= len("harbourharbour")
    assert 14 < longest["generated"] <= 20
    assert 32 < longest["tunnel"] <= 56


def test_most_lookups_are_told_apart() -> None:
    """98 of 100; all tunnels, and three of four generated names."""
    ids = np.arange(5000)
    kinds = lookups.kinds(ids)
    measures = name_shape.as_matrix(name_shape.measure(lookups.names(ids)))
    right = name_shape.train_classifier().predict_proba(measures).argmax(axis=1) == kinds
    assert right.mean() > 0.97
    assert right[kinds == 2].all()
    assert 0.65 < right[kinds == 1].mean() < 0.9


def test_a_line_that_is_no_lookup_is_told() -> None:
    log = pa.record_batch({"id": [1, 2], "line": ["192.0.2.1 www.example A", "192.0.2.1 www"]})
    with pytest.raises(InputError, match=r"'192\.0\.2\.1 www'"):
        lookups.parse(log)
