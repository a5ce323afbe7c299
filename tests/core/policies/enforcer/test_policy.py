"""The enforcer: global and local rules, waiting, grace, placement."""

from dataclasses import replace

import pytest
from tests.builders import host, host_snap, snap

from penstock.core.decision import Decision, Placement
from penstock.core.policies.enforcer.policy import EnforcerParams, enforcer
from penstock.core.snapshot import HostSnapshot, SliceSnapshot, Snapshot
from penstock.errors import InputError

FIGURE_FIVE = (
    host("h1", AP_1=(0.12, 1), AP_2=(0.12, 1), M_1=(0.50, 20)),
    host("h2", EP_1=(0.13, 2), EP_2=(0.10, 2), M_2=(0.50, 20)),
)


def answer(history: list[Snapshot], applied: list[Decision] | None = None) -> Placement:
    placement = enforcer(history, applied or [], EnforcerParams()).placement
    assert placement is not None
    return placement


def lasting(*hosts: HostSnapshot) -> list[Snapshot]:
    return [host_snap(*hosts, at=at) for at in (0.0, 30.0)]


def test_figure_five_waits_and_then_moves_the_cheap_slices_to_one_new_host() -> None:
    history = lasting(*FIGURE_FIVE)
    assert answer(history[:1]).reason == "waiting"
    placement = answer(history)
    assert (placement.current, placement.wanted) == (2, 3)
    assert placement.reason == "mean-above-range"
    moves = [(m.slice, m.source, m.destination) for m in placement.moves]
    assert moves == [
        ("EP:1", "h2", "new-1"),
        ("AP:1", "h1", "new-1"),
        ("AP:2", "h1", "new-1"),
        ("EP:2", "h2", "new-1"),
    ]


def test_a_rule_must_be_broken_without_a_break() -> None:
    calm = host_snap(host("h1", s=(0.5, 1)), at=20.0)
    busy = [host_snap(host("h1", s=(0.75, 1)), at=at) for at in (0.0, 10.0, 30.0)]
    assert answer([busy[0], busy[1], calm, busy[2]]).reason == "waiting"


def test_samples_need_not_fall_on_the_half_minute() -> None:
    history = [host_snap(*FIGURE_FIVE, at=at) for at in (0.0, 20.0, 40.0)]
    assert answer(history[:2]).reason == "waiting"
    assert answer(history).reason == "mean-above-range"


def test_nothing_moves_within_the_grace_period() -> None:
    history = lasting(*FIGURE_FIVE)
    before = enforcer(history, [], EnforcerParams())
    again = [*history, host_snap(*FIGURE_FIVE, at=45.0)]
    assert answer(again, [before]).reason == "grace"
    assert answer([*again, host_snap(*FIGURE_FIVE, at=60.0)], [before]).moves


def test_scale_in_releases_the_least_loaded_hosts() -> None:
    hosts = [host(f"h{i}", **{f"s_{i}": (load, 1)}) for i, load in enumerate([0.2, 0.1, 0.15])]
    placement = answer(lasting(*hosts))
    assert placement.reason == "mean-below-range"
    assert (placement.current, placement.wanted) == (3, 1)
    assert {m.destination for m in placement.moves} == {"h0"}


def test_scale_in_keeps_a_host_whose_slices_do_not_fit() -> None:
    hosts = [
        host("h1", big=(0.45, 1)),
        host("h2", mid=(0.3, 1)),
        host("h3", low=(0.06, 1)),
        host("h4", low2=(0.05, 1)),
    ]
    placement = answer(lasting(*hosts))
    assert (placement.current, placement.wanted) == (4, 2)
    assert [(m.slice, m.destination) for m in placement.moves] == [("low2", "h1"), ("low", "h2")]


def test_the_last_host_is_never_released() -> None:
    placement = answer(lasting(host("h1", s=(0.01, 1))))
    assert (placement.reason, placement.wanted, placement.moves) == ("mean-below-range", 1, ())


def test_a_busy_host_is_relieved_where_the_mean_is_in_range() -> None:
    hosts = [host("h1", a=(0.35, 5), b=(0.34, 1), c=(0.2, 9)), host("h2", d=(0.1, 1))]
    hosts.append(host("h3", e=(0.3, 1)))
    placement = answer(lasting(*hosts))
    assert placement.reason == "host-above-range"
    # b (0.34, memory 1) is not worth the 0.39 that h1 must shed; a with b is cheapest that is
    moves = [(m.slice, m.source, m.destination) for m in placement.moves]
    assert moves == [("a", "h1", "h2"), ("b", "h1", "new-1")]


def test_an_idle_host_is_emptied_only_if_all_its_slices_fit_elsewhere() -> None:
    full, idle = host("h1", a=(0.45, 1)), host("h2", b=(0.15, 1))
    placement = answer(lasting(full, idle))
    assert (placement.reason, placement.moves, placement.wanted) == ("host-below-range", (), 2)
    roomy = answer(
        lasting(host("h1", a=(0.45, 1)), host("h2", b=(0.05, 1)), host("h3", c=(0.5, 1)))
    )
    assert [(m.slice, m.destination) for m in roomy.moves] == [("b", "h1")]
    assert roomy.wanted == 2


def test_a_host_that_is_busy_for_long_is_not_masked_by_one_that_just_became_busier() -> None:
    calm = [host(f"c{i}", **{f"c_{i}": (0.4, 1)}) for i in range(4)]
    before = host_snap(host("h1", a=(0.5, 1), b=(0.35, 1)), host("h2", d=(0.5, 1)), *calm, at=0.0)
    after = host_snap(host("h1", a=(0.5, 1), b=(0.35, 1)), host("h2", d=(0.9, 1)), *calm, at=30.0)
    placement = answer([before, after])
    assert placement.reason == "host-above-range"
    assert {m.source for m in placement.moves} == {"h1"}


def test_a_slice_goes_only_where_its_memory_fits() -> None:
    small = HostSnapshot(
        name="h2", slices={"x": SliceSnapshot(cpu=0.4, memory=5)}, memory_capacity=6
    )
    busy = host("h1", a=(0.45, 50), b=(0.08, 3), c=(0.4, 20))
    placement = answer(lasting(busy, small, host("h3", y=(0.46, 1))))
    assert placement.reason == "host-above-range"
    assert all(m.destination != "h2" for m in placement.moves)


def test_everything_in_range() -> None:
    assert answer(lasting(host("h1", a=(0.5, 1)))).reason == "in-range"


def test_operators_are_not_its_business() -> None:
    with pytest.raises(InputError, match="hosts"):
        enforcer([snap()], [], EnforcerParams())


def test_the_target_must_lie_within_the_ranges() -> None:
    with pytest.raises(InputError, match="must lie between"):
        EnforcerParams(target=0.75)


def limited(most: int, *hosts: HostSnapshot) -> list[Snapshot]:
    return [replace(snapshot, max_hosts=most) for snapshot in lasting(*hosts)]


def test_the_last_free_host_takes_what_brings_all_hosts_to_their_mean() -> None:
    pieces = {f"s_{i}": (0.2, 1) for i in range(6)}
    # 1.2 needs three hosts at the target, and there are two
    placement = answer(limited(2, host("h1", **pieces)))
    assert (placement.wanted, placement.reason) == (2, "mean-above-range")
    assert [m.destination for m in placement.moves] == ["new-1"] * 3


def test_nothing_is_shuffled_when_all_hosts_are_busy() -> None:
    hosts = (host("h1", a=(0.9, 1), b=(0.1, 1)), host("h2", c=(0.8, 1)))
    placement = answer(limited(2, *hosts))
    assert (placement.reason, placement.moves, placement.wanted) == ("mean-above-range", (), 2)
    assert answer(limited(3, *hosts)).wanted == 3


def test_a_slice_stays_where_the_last_host_would_be_as_busy_with_it() -> None:
    full = host("h1", a=(0.5, 1), b=(0.35, 1))
    others = (host("h2", c=(0.5, 1)), host("h3", d=(0.45, 1)))
    placement = answer(limited(3, full, *others))
    assert placement.reason == "host-above-range"
    assert placement.wanted == 3
    assert [(m.slice, m.destination) for m in placement.moves] == [("b", "h3")]
    busier = (host("h2", c=(0.6, 1)), host("h3", d=(0.55, 1)))
    assert answer(limited(3, full, *busier)).moves == ()
