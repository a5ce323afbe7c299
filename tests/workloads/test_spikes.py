"""Spikes on top of any workload."""

from itertools import islice

import pytest

from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.registry import PATTERNS, make_workload
from penstock.workloads.spikes import Spikes, draw_spikes, with_spikes
from penstock.workloads.workload import Workload


class Draws(JavaRandom):
    """A generator whose draws the test writes down, and which knows how many were used."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def next_double(self) -> float:
        return self.draws.pop(0)


def test_a_quiet_minute_costs_two_draws_even_if_spikes_are_off() -> None:
    random = Draws(0.0, 0.0, 0.0, 0.0, 0.0)
    assert list(islice(draw_spikes(Spikes(), 100, random), 2)) == [0, 0]
    assert len(random.draws) == 1


def test_a_spike_begins_after_its_minute_and_each_of_its_minutes_draws_a_size() -> None:
    spikes = Spikes(spike_up=0.5, spike_minutes=3)
    up, down, length, first, second = 0.4, 0.9, 0.5, 0.0, 0.5
    random = Draws(up, down, length, first, second, 0.9, 0.9)
    assert list(islice(draw_spikes(spikes, 100, random), 4)) == [0, 50, 75, 0]
    assert random.draws == []


@pytest.mark.parametrize(("coin", "expected"), [(0.1, 50), (0.9, -50)])
def test_both_at_once_are_settled_by_a_coin(coin: float, expected: int) -> None:
    spikes = Spikes(spike_up=0.5, spike_down=0.5, spike_minutes=1)
    random = Draws(0.1, 0.1, coin, 0.0, 0.0)
    assert list(islice(draw_spikes(spikes, 100, random), 2)) == [0, expected]


@pytest.mark.parametrize("name", [n for n in PATTERNS if n != "trace"])
def test_every_workload_takes_spikes_and_stays_at_least_zero(name: str) -> None:
    calm = make_workload(name, 60)
    wild = make_workload(name, 60, given={"spike_up": 0.3, "spike_down": 0.3})
    assert wild.duration_s == calm.duration_s
    assert wild != calm
    assert min(wild.starts + wild.ends) >= 0


def test_without_a_chance_nothing_changes() -> None:
    load = Workload.of_steps([5, 6])
    assert with_spikes(load, Spikes(), 1) is load


def test_the_thesis_draws_are_not_moved_by_spikes_that_are_off() -> None:
    assert make_workload("cosine", given={"spike_minutes": 9}) == make_workload("cosine")


def test_sizes_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"cosine\.spike_low: must be at most spike_high \(5\)"):
        make_workload("cosine", given={"spike_low": 7, "spike_high": 5})
