"""The one place that remembers for policies and guards."""

import pytest
from tests.builders import bare, host, host_snap, op, snap

from penstock.control.decider import Decider
from penstock.control.registry import builtin_policies
from penstock.core.guards import Guards
from penstock.errors import InputError

POLICIES = builtin_policies()


def test_memory_stays_within_the_look_back() -> None:
    decider = Decider(POLICIES["hpa-cpu"], guards=Guards(stabilise_s=60))
    for tick in range(1000):
        decider.decide(snap(op(), at=15.0 * tick))
    assert len(decider._history) <= 300 / 15 + 2
    assert len(decider._decided) <= 60 / 15 + 1


def test_guards_see_what_was_carried_out() -> None:
    decider = Decider(POLICIES["threshold"], guards=Guards(cooldown_s=60))
    wanted = []
    for tick in range(6):
        decision = decider.decide(snap(bare(k=2, queue=999), at=15.0 * tick))
        wanted.append(decision.targets["map"].wanted)
        if decision.is_change:
            decider.note_applied(decision)
    assert wanted == [3, 2, 2, 2, 3, 2]


def test_what_is_measured_once_is_kept() -> None:
    decider = Decider(POLICIES["psps"])
    decider.decide(snap(bare(queue=0, service_time_s=0.1), offered=100))
    later = decider.decide(snap(bare(queue=0, service_time_s=9.9), at=30, offered=100))
    assert later.changes == {"map": 10}


def test_time_does_not_go_back() -> None:
    decider = Decider(POLICIES["threshold"])
    decider.decide(snap(bare(), at=10))
    with pytest.raises(InputError, match="must not go back, got 5 after 10"):
        decider.decide(snap(bare(), at=5))


def test_a_policy_gets_the_kind_of_snapshot_that_it_reads() -> None:
    with pytest.raises(InputError, match="enforcer decides about hosts"):
        Decider(POLICIES["enforcer"]).decide(snap(bare()))
    with pytest.raises(InputError, match="ds2 decides about operators"):
        Decider(POLICIES["ds2"]).decide(host_snap(host("h", s=(0.1, 1))))
