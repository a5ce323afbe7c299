"""Choosers of replicas."""

from collections import Counter
from random import Random

from penstock.engines.simulator.records.groupings import GROUPINGS, Loads, fields, load_balancing


def test_shuffle_gives_every_replica_its_share() -> None:
    rng = Random(1)
    loads = Loads.idle(4)
    chosen = Counter(
        GROUPINGS["shuffle"](loads, key="", draw=rng.random(), cost=0.1)[0] for _ in range(8000)
    )
    assert all(1800 < chosen[replica] < 2200 for replica in range(4))


def test_fields_sends_a_key_to_one_replica() -> None:
    chosen = {key: fields(Loads.idle(5), key=key, draw=0.9, cost=0)[0] for key in "abcdefgh"}
    again = {key: fields(Loads.idle(5), key=key, draw=0.1, cost=0)[0] for key in "abcdefgh"}
    assert chosen == again
    assert len(set(chosen.values())) > 1


def test_load_balancing_levels_what_replicas_have() -> None:
    loads = Loads((0.6, 0.0, 0.3))
    for _ in range(9):
        _, loads = load_balancing(loads, key="", draw=0, cost=0.1)
    assert max(loads.utilisation) - min(loads.utilisation) < 0.1 + 1e-9


def test_load_balancing_goes_round_once_all_are_full() -> None:
    loads, chosen = Loads((1.0, 1.0, 1.0)), []
    for _ in range(6):
        replica, loads = load_balancing(loads, key="", draw=0, cost=0.1)
        chosen.append(replica)
    assert chosen == [0, 1, 2, 0, 1, 2]
