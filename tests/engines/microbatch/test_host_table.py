"""Slices on hosts: what moves and new hosts mean for the replicas of each operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.decision import Move
from penstock.core.placement import place
from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.microbatch.host_snapshot import build_hosts
from penstock.engines.microbatch.host_table import HostTable, find_operators
from penstock.errors import InputError

SLICES = {"access": 2, "match": 5, "exit-point": 3}


@given(st.integers(1, 10), st.data())
def test_moves_keep_every_slice_on_one_host_and_give_replicas(
    hosts: int, data: st.DataObject
) -> None:
    table = HostTable.spread(SLICES, hosts)
    model = dict(table.homes)
    assert sorted(table.hosts) == sorted({*model.values()})
    for _ in range(data.draw(st.integers(0, 6))):
        name = data.draw(st.sampled_from(sorted(model)))
        to = data.draw(st.sampled_from([*table.hosts, "new-1"]))
        before = set(table.hosts)
        table = table.move([Move(name, model[name], to)])
        if to == "new-1":
            (to,) = set(table.hosts) - before
        model[name] = to
        assert dict(table.homes) == model
        assert set(table.hosts) == set(model.values())
        assert HostTable.from_json(table.to_json()) == table
        for operator, size in SLICES.items():
            own, pins = table.hosts_of(operator), table.pins(operator)
            assert sorted(pins) == list(range(size))
            assert {n: own[replica] for n, replica in pins.items()} == {
                n: model[f"{operator}/{n}"] for n in range(size)
            }
            # every replica has work, and slices stay where they are put
            assert set(pins.values()) == set(range(len(own)))
            homes = place([float(n) for n in range(size)], len(own), pins=pins)
            assert dict(enumerate(homes)) == pins
    assert table.fits(SLICES)
    assert not table.fits({**SLICES, "access": 3})


def test_names_of_hosts_are_not_used_again() -> None:
    table = HostTable.spread({"match": 2}, 2)
    table = table.move([Move("match/1", "h2", "h1")])
    assert table.hosts == ("h1",)
    table = table.move([Move("match/1", "h1", "new-1")])
    assert table.hosts == ("h1", "h3")


@pytest.mark.parametrize(
    ("move", "problem"),
    [
        (Move("matc/1", "h1", "h2"), "unknown slice"),
        (Move("match/1", "h1", "h2"), "is on host h2, not on h1"),
    ],
)
def test_moves_that_cannot_be(move: Move, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        HostTable.spread({"match": 2}, 2).move([move])


def test_operators_of_moves() -> None:
    assert find_operators([Move("a/b/1", "h1", "h2"), Move("c/2", "h1", "h2")]) == {"a/b", "c"}


def test_a_host_shows_what_its_slices_use() -> None:
    table = HostTable.spread({"match": 2, "exit": 1}, 2)
    extra = {
        "slice_cpu": (0.2, 0.3),
        "slice_bytes_in": (1_000_000, 0),
        "slice_bytes_out": (500_000, 0),
        "overhead": 1.5,
    }
    operators = {
        "match": OperatorSnapshot(name="match", parallelism=2, extra=extra),
        "exit": OperatorSnapshot(name="exit", parallelism=1),
    }
    hosts = build_hosts(table, operators, {"match": {0: 2_000_000, 1: 1_000_000}})
    slices = {name: piece for host in hosts.values() for name, piece in host.slices.items()}
    assert slices["match/0"].cpu == pytest.approx(0.3)
    assert slices["match/1"].cpu == pytest.approx(0.45)
    assert (slices["match/0"].memory, slices["match/0"].network) == (2.0, 1.5)
    assert (slices["exit/0"].cpu, slices["exit/0"].memory) == (0.0, 0.0)
    assert sum(host.load for host in hosts.values()) == pytest.approx(0.75)
