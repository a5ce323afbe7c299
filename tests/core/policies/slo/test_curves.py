"""The needed capacity against a queue that is followed tenth by tenth of a second."""

import random
from dataclasses import replace

import numpy as np
import pytest

from penstock.core.policies.slo.curves import RECOURSE, ServiceCurve, needed_rates

TENTH = 0.1
CURVE = ServiceCurve(
    start_s=0, pause_s=0, end_s=60, next_pause_s=0, settled_s=0, wait_s=5, step_s=15
)


def longest_wait_s(
    rates: list[float],
    curve: ServiceCurve,
    capacity: float,
    *,
    backlog: float = 0.0,
    present: float = 0.0,
    after_s: float = 0.0,
) -> float:
    """Return the longest wait of what arrives from `after_s` to the end of the curve.

    After it, the capacity is what the next decision may add, if that is better than waiting on.
    """

    def served(helps: bool) -> list[float]:
        done, total = [0.0], 0.0
        for tenth in range(round((curve.end_s + 400) / TENTH)):
            at = tenth * TENTH
            speed = capacity
            if at < curve.start_s:
                speed = present
            elif at < curve.start_s + curve.pause_s:
                speed = 0.0
            elif helps and at >= curve.end_s:
                speed = 0.0 if at < curve.end_s + curve.next_pause_s else RECOURSE * capacity
            total += speed * TENTH
            done.append(total)
        return done

    def wait_s(done: list[float]) -> float:
        worst, offset = 0.0, 0.0
        arrived, longest, lost = backlog, 0.0, 0.0
        ends = np.array(done)
        for tenth in range(round(curve.end_s / TENTH)):
            at = (tenth + 1) * TENTH
            arrived += rates[min(int(tenth * TENTH / curve.step_s), len(rates) - 1)] * TENTH
            # an idle server does not save its work
            lost = max(lost, done[tenth + 1] - arrived + offset)
            out = int(np.searchsorted(ends, arrived + lost - 1e-6)) * TENTH
            if at > after_s:
                longest = max(longest, out - at)
        return max(worst, longest)

    return min(wait_s(served(False)), wait_s(served(True)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("wait_s", [2.0, 8.0, 25.0])
def test_the_needed_capacity_is_just_enough(seed: int, wait_s: float) -> None:
    rng = random.Random(seed)
    rates = [rng.choice([20.0, 100.0, 500.0]) for _ in range(4)]
    curve = replace(CURVE, wait_s=wait_s, next_pause_s=rng.choice([0.0, 4.0]))
    needed = float(needed_rates(np.array([rates]), curve)[0])
    assert longest_wait_s(rates, curve, needed * 1.01) <= wait_s + 0.3
    assert longest_wait_s(rates, curve, needed * 0.97) >= wait_s - 0.3


def test_a_pause_that_is_shorter_than_the_allowed_wait_is_carried() -> None:
    curve = replace(CURVE, pause_s=10, wait_s=12, settled_s=10)
    needed = float(needed_rates(np.array([[100.0] * 4]), curve)[0])
    assert longest_wait_s([100.0] * 4, curve, needed * 1.01) <= 12.3
    assert longest_wait_s([100.0] * 4, curve, needed * 0.97) > 11.7


def test_a_backlog_is_no_longer_late_at_the_time_given() -> None:
    curve = replace(CURVE, start_s=5, settled_s=20, wait_s=4)
    given = {"backlog": 3000.0, "present": 100.0}
    needed = float(needed_rates(np.array([[100.0] * 4]), curve, 3000.0, 100.0)[0])
    late = longest_wait_s([100.0] * 4, curve, needed * 1.01, **given, after_s=20)
    assert late <= 4.3 < longest_wait_s([100.0] * 4, curve, needed * 1.01, **given)
    assert longest_wait_s([100.0] * 4, curve, needed * 0.95, **given, after_s=20) > 4


def test_a_short_burst_takes_less_than_its_rate_and_a_loose_objective_still_less() -> None:
    burst = np.array([[100.0, 400.0, 100.0, 100.0]])
    needed = [
        float(needed_rates(burst, replace(CURVE, wait_s=wait_s))[0]) for wait_s in (0.1, 5, 15, 30)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] == pytest.approx(400, rel=0.02) and needed[-1] < 150


def test_the_next_decision_helps_only_after_its_pause() -> None:
    steady = np.array([[100.0] * 4])
    loose = replace(CURVE, wait_s=20)
    with_pause = replace(loose, next_pause_s=18)
    assert needed_rates(steady, loose)[0] < needed_rates(steady, with_pause)[0] <= 100
