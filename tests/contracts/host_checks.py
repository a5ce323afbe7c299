"""What every engine with hosts must do behind the port, simulated or real.

A check gets an engine that has just been made, on two hosts, with at least two slices each.
"""

from collections.abc import Callable, Mapping

import pytest

from penstock.core.decision import Move
from penstock.core.snapshot import HostSnapshot
from penstock.engines.events import RunningEvent
from penstock.engines.port import HOSTS, Engine, Plan
from penstock.errors import InputError

Hosts = Mapping[str, HostSnapshot]


def observe(engine: Engine) -> dict[str, set[str]]:
    """The slices on each host."""
    return {name: {*host.slices} for name, host in engine.observe().hosts.items()}


def check_every_slice_is_on_one_host(engine: Engine) -> None:
    hosts = observe(engine)
    assert len(hosts) == 2
    names = [name for slices in hosts.values() for name in slices]
    assert len(names) == len({*names}) >= 4
    for host in engine.observe().hosts.values():
        assert host.load >= 0
        assert all(piece.cpu >= 0 <= piece.memory for piece in host.slices.values())


def check_a_move_to_an_unknown_host_starts_one(engine: Engine) -> None:
    before = observe(engine)
    (host, slices), _ = before.items()
    moved = min(slices)
    engine.apply(Plan(moves=(Move(moved, host, "new-1"),)))
    engine.advance(1)
    after = observe(engine)
    (new,) = {*after} - {*before}
    assert after[new] == {moved}
    assert moved not in after[host]
    events = [e for e in engine.status().events if isinstance(e, RunningEvent)]
    assert (HOSTS, 3) in [(event.operator, event.replicas) for event in events]


def check_a_host_without_slices_ends(engine: Engine) -> None:
    (host, slices), (other, others) = observe(engine).items()
    engine.apply(Plan(moves=tuple(Move(name, host, other) for name in slices)))
    for _ in range(60):
        engine.advance(1)
        if len(observe(engine)) == 1:
            break
    assert observe(engine) == {other: slices | others}


def check_moves_that_cannot_be_change_nothing(engine: Engine) -> None:
    before = observe(engine)
    (host, slices), (other, _) = before.items()
    for move in (Move("nobody/1", host, other), Move(min(slices), other, host)):
        with pytest.raises(InputError):
            engine.apply(Plan(moves=(move,)))
    engine.advance(1)
    assert observe(engine) == before


def check_slices_stay_where_they_were_put(engine: Engine) -> None:
    (host, slices), (other, _) = observe(engine).items()
    moved = min(slices)
    engine.apply(Plan(moves=(Move(moved, host, other),)))
    for _ in range(5):
        engine.advance(1)
        assert moved in observe(engine)[other]


CHECKS: dict[str, Callable[[Engine], None]] = {
    name.removeprefix("check_"): value
    for name, value in globals().copy().items()
    if name.startswith("check_")
}
