"""Slices are placed by load and move seldom."""

from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.core.placement import TOLERANCE, balance, place

LOADS = st.lists(st.floats(0, 100), min_size=1, max_size=40)


@given(LOADS, st.integers(1, 12))
def test_every_slice_has_a_replica_and_none_has_more_than_its_share_and_one_slice(
    loads: list[float], replicas: int
) -> None:
    """Graham's bound: who gets a slice had least to do, so at most the mean of all others."""
    homes = place(loads, replicas)
    assert len(homes) == len(loads)
    assert set(homes) <= set(range(replicas))
    most = sum(loads) / replicas + (1 - 1 / replicas) * max(loads)
    assert max(balance(loads, homes, replicas).replicas) <= most + 1e-6


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.integers(1, 3))
def test_largest_first_is_never_worse_than_four_thirds_of_the_best(
    loads: list[float], replicas: int
) -> None:
    best = min(
        max(balance(loads, homes, replicas).replicas)
        for homes in product(range(replicas), repeat=len(loads))
    )
    homes = place(loads, replicas)
    assert max(balance(loads, homes, replicas).replicas) <= (4 / 3) * best + 1e-6


@given(LOADS, st.integers(1, 12), st.data())
def test_moves_never_make_it_worse(loads: list[float], replicas: int, data: st.DataObject) -> None:
    somewhere = st.integers(0, replicas - 1)
    before = [data.draw(somewhere) for _ in loads]
    homes = place(loads, replicas, dict(enumerate(before)))
    was, now = (max(balance(loads, each, replicas).replicas) for each in (before, homes))
    assert now <= was + 1e-6


@example([74.0] * 3 + [55.80017491225375] + [73.17746065441682] * 2, 5)
@given(LOADS, st.integers(1, 8))
def test_what_is_even_stays(loads: list[float], replicas: int) -> None:
    homes = place(loads, replicas)
    again = place(loads, replicas, dict(enumerate(homes)))
    settled = place(loads, replicas, dict(enumerate(again)))
    assert settled == again
    if balance(loads, homes, replicas).skew <= 1 + TOLERANCE:
        assert again == homes


def test_one_replica_more_takes_its_part_and_no_others_move() -> None:
    before = place([1.0] * 64, 4)
    after = place([1.0] * 64, 5, dict(enumerate(before)))
    moved = [s for s in range(64) if before[s] != after[s]]
    assert all(after[s] == 4 for s in moved)
    assert balance([1.0] * 64, after, 5).skew <= 1 + TOLERANCE
    assert len(moved) <= 13


def test_one_replica_less_moves_only_what_it_had() -> None:
    before = place([1.0] * 64, 4)
    after = place([1.0] * 64, 3, dict(enumerate(before)))
    assert [s for s in range(64) if before[s] != after[s]] == [
        s for s in range(64) if before[s] == 3
    ]


def test_the_others_leave_the_replica_of_a_hot_slice() -> None:
    loads = [20.0, *[1.0] * 20]
    homes = place(loads, 2, dict.fromkeys(range(21), 0))
    assert sum(homes[s] == homes[0] for s in range(1, 21)) <= 2
    assert not balance(loads, homes, 2).is_bound
    assert balance(loads, place(loads, 4), 4).is_bound


def test_without_any_load_slices_are_spread_by_number() -> None:
    homes = place([0.0] * 64, 3)
    assert sorted(homes.count(replica) for replica in range(3)) == [21, 21, 22]
    assert balance([0.0] * 64, homes, 3).skew == 1.0


@given(LOADS, st.integers(1, 12), st.data())
def test_pinned_slices_stay_and_the_others_are_balanced_around_them(
    loads: list[float], replicas: int, data: st.DataObject
) -> None:
    slices = st.integers(0, len(loads) - 1)
    pins = data.draw(st.dictionaries(slices, st.integers(0, replicas + 2), max_size=len(loads)))
    homes: dict[int, int] = {}
    for _ in range(3):
        homes = dict(enumerate(place(loads, replicas, homes, pins=pins)))
        assert sorted(homes) == list(range(len(loads)))
        assert set(homes.values()) <= set(range(replicas))
        assert all(homes[s] == r for s, r in pins.items() if r < replicas)
    free = [s for s in homes if pins.get(s, replicas) >= replicas]
    totals = balance(loads, [homes[s] for s in range(len(loads))], replicas).replicas
    lightest = min(totals)
    for number in free:  # Graham's bound, with what is pinned as a given
        here = totals[homes[number]]
        pinned = sum(loads[s] for s in homes if homes[s] == homes[number] and s not in free)
        own = [loads[s] for s in free if homes[s] == homes[number]]
        tolerated = (1 + TOLERANCE) * sum(totals) / replicas
        assert here <= max(tolerated, pinned + max(own), lightest + 2 * max(own)) + 1e-6


@given(LOADS, st.integers(1, 12), st.data())
def test_without_pins_nothing_is_different(
    loads: list[float], replicas: int, data: st.DataObject
) -> None:
    before = {s: data.draw(st.integers(0, replicas)) for s in range(len(loads))}
    beyond = dict.fromkeys(before, replicas + 1)
    assert place(loads, replicas, before) == place(loads, replicas, before, pins=beyond)
