"""The last rows of sessions, by a formula and by drawing every key."""

import numpy as np
import pytest

from penstock.engines.simulator.batches.session_output import expected_session_ends


@pytest.mark.parametrize(("new_keys", "silent_s"), [(0.02, 5.0), (0.05, 10.0), (0.3, 20.0)])
def test_as_many_rows_are_the_last_as_when_every_key_is_drawn(
    new_keys: float, silent_s: float
) -> None:
    rng = np.random.default_rng(1)
    rates = 40 + 35 * np.cos(np.arange(1200) / 20)  # rows a second, in bins of 0.1 s
    counts = rng.poisson(rates / 10)
    due = np.arange(1200) / 10
    times = np.repeat(due, counts)
    drawn = np.mean([_lasts(rng, times, silent_s, new_keys) for _ in range(20)])
    expected = expected_session_ends(due, counts, silent_s, new_keys, 0)
    assert expected[due < due[-1] - silent_s].sum() == pytest.approx(drawn, rel=0.1)


def _lasts(rng: np.random.Generator, times: np.ndarray, silent_s: float, new_keys: float) -> int:
    """Draw keys, and count the rows whose key does not come again soon enough."""
    seen: dict[int, float] = {}
    silent = 0
    for i, at in enumerate(times):
        key = int(rng.integers(max(1, round(new_keys * (i + 1)))))
        before = seen.get(key)
        silent += before is not None and at - before > silent_s
        seen[key] = float(at)
    return silent + sum(at < times[-1] - silent_s for at in seen.values())


def test_rows_before_these_have_keys_too() -> None:
    due, counts = np.array([0.0, 1.0]), np.array([1, 10])
    alone, among = (
        expected_session_ends(due, counts, 5.0, 0.01, before)[0] for before in (0, 5000)
    )
    assert alone < 1e-9
    assert among == pytest.approx(np.exp(-10 / 50), rel=0.01)
