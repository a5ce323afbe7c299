"""Draws by record: the same for the same number, and spread as they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipelines import record_draws as draws

MANY = np.arange(100_000)


@given(st.integers(0, draws.TRAINING), st.integers(1, 50), st.data())
def test_any_part_is_drawn_again(first: int, size: int, data: st.DataObject) -> None:
    ids = first + np.arange(size)
    begin = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(begin, size))
    assert (draws.bits(ids, "a")[begin:end] == draws.bits(ids[begin:end], "a")).all()
    whole = draws.lognormal(ids, "a", 1, 0.5)
    assert (whole[begin:end] == draws.lognormal(ids[begin:end], "a", 1, 0.5)).all()


def test_no_bits_are_drawn_twice() -> None:
    both = np.concatenate([draws.bits(MANY, "a"), draws.bits(MANY, "b")])
    assert len(np.unique(both)) == 2 * len(MANY)


def test_every_bit_is_one_half_of_the_time() -> None:
    ones = np.unpackbits(draws.bits(MANY, "a").view(np.uint8)).reshape(len(MANY), 64).mean(axis=0)
    # five standard errors of a fair coin
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(len(MANY))


def test_streams_and_neighbours_have_nothing_in_common() -> None:
    one, other = draws.uniform(MANY, "a"), draws.uniform(MANY, "b")
    for left, right in ((one, other), (one[1:], one[:-1])):
        assert abs(np.corrcoef(left, right)[0, 1]) < 5 / np.sqrt(len(MANY))


def test_uniform_fills_its_range() -> None:
    drawn = draws.uniform(MANY, "a", 2, 6)
    assert drawn.min() >= 2
    assert drawn.max() < 6
    counts, _ = np.histogram(drawn, bins=20, range=(2, 6))
    expected = len(MANY) / 20
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < 50  # 19 degrees of freedom: above this once in 10,000


def test_picks_follow_their_shares() -> None:
    shares = (0.7, 0.2, 0.1)
    counts = np.bincount(draws.pick_by_share(MANY, "a", shares))
    assert counts / len(MANY) == pytest.approx(shares, abs=0.01)
    even = np.bincount(draws.pick(MANY, "a", 4))
    assert even / len(MANY) == pytest.approx([0.25] * 4, abs=0.01)


@pytest.mark.parametrize("scv", [0.0, 0.1, 1.0])
def test_lognormal_has_the_mean_and_scv_asked_for(scv: float) -> None:
    drawn = draws.lognormal(MANY, "a", 0.3, scv)
    assert drawn.mean() == pytest.approx(0.3, rel=0.02)
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(scv, rel=0.1, abs=1e-12)
