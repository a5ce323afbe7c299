"""The thesis' patterns, to the integers of its published workbench."""

from itertools import pairwise

import pytest

from penstock.workloads.registry import make_workload


def rates(name: str, minutes: int | None = None, seed: int = 1066, **given: float) -> list[float]:
    return make_workload(name, minutes, seed, given).mean_rates().tolist()


def test_the_cosine_without_noise() -> None:
    wave = rates("cosine", noise=0)
    shown = {minute: wave[minute] for minute in (0, 1, 15, 30, 45, 60, 139)}
    assert shown == {
        0: 2200000,
        1: 2194521,
        15: 1200000,
        30: 200000,
        45: 1199999,
        60: 2200000,
        139: 793263,
    }
    assert sum(wave) == 177012307


def test_the_cosine_with_noise() -> None:
    assert rates("cosine")[:5] == [2227166, 2160889, 2231904, 2154227, 2162388]


def test_the_random_walk_with_its_published_seed() -> None:
    walk = rates("random", seed=1073)
    assert walk[:5] == [1250000, 1387713, 1623965, 1440998, 1844955]
    assert max(walk) <= 2_500_000


def test_the_increase() -> None:
    rising = rates("increase")
    assert (rising[-1], max(rising)) == (2273255, 2401952)


def test_the_decrease() -> None:
    falling = rates("decrease")
    assert falling[:3] == [2515417, 2458179, 2400231]
    assert falling[-1] == 551426


def test_the_convergence_is_10_40_40_minutes_exactly() -> None:
    assert rates("convergence") == [0] * 10 + [2_000_000] * 40 + [1_000_000] * 40


def test_the_convergence_can_be_split_otherwise() -> None:
    assert rates("convergence", 10, lead=1, hold=3, first=5, second=7) == [
        0, 5, 5, 5, 7, 7, 7, 0, 0, 0,
    ]  # fmt: skip


def test_noise_around_a_level_is_uniform_and_whole() -> None:
    noisy = rates("convergence", 1010, lead=10, hold=1000, noise=100_000)[10:]
    assert all(rate == int(rate) and abs(rate - 2_000_000) <= 100_000 for rate in noisy)
    assert sum(noisy) / len(noisy) == pytest.approx(2_000_000, abs=6000)


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(6, [100, 100, 200, 200, 120, 120]), (8, [100, 100, 200, 200, 120, 120, 120, 120])],
)
def test_the_last_level_of_a_test_run_takes_what_is_left(minutes: int, expected: list[int]) -> None:
    assert rates("testrun", minutes) == [1000 * level for level in expected]


def test_a_test_run_with_two_levels_and_odd_length_is_not_a_minute_short() -> None:
    assert rates("testrun", 5, second=-1) == [100_000] * 2 + [120_000] * 3


def test_the_test_runs_that_scale_once_last_10_minutes() -> None:
    assert rates("testrun-scaleup") == [100_000] * 5 + [200_000] * 5
    assert rates("testrun-scaledown") == [200_000] * 5 + [100_000] * 5


def test_increase_keeps_the_integer_divisions() -> None:
    # 44 // 22 = 2 and 44 // 30 = 1: no minute moves by more, truncated toward zero
    walk = rates("increase", 500, start=1000, total=44)
    moves = {after - before for before, after in pairwise(walk)}
    assert moves <= {-1, 0, 1, 2}
