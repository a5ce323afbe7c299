"""What every policy must do, whoever wrote it. Each check raises if a policy does not."""

import copy
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from penstock.core.decision import Decision
from penstock.core.frozen_dict import FrozenDict
from penstock.core.policy import Policy
from penstock.core.snapshot import HostSnapshot, OperatorSnapshot, SliceSnapshot, Snapshot
from penstock.core.snapshot_json import SHARES

AMOUNTS = ("input_rate", "output_rate", "queue", "service_time_s", "service_scv", "arrival_scv")
FUZZED = 2000


def quick(policy: Policy) -> Any:
    """Default parameters, with windows that fit a test."""
    short = {"window_s": 30.0, "stabilization_s": 0.0, "scale_down_interval_s": 30.0}
    known = {described.name for described in policy.params.describe()}
    return policy.params(**{name: value for name, value in short.items() if name in known})


def random_snapshot(rng: random.Random, at: float, reads: str) -> Snapshot:
    """Any snapshot that could be read from a file: holes, zeros and extremes included."""
    if reads == "hosts":
        return Snapshot(at=at, hosts=_random_hosts(rng))
    names = [f"o{i}" for i in range(rng.randint(1, 6))]
    ops = {}
    for i, name in enumerate(names):
        measures: dict[str, Any] = {n: rng.choice([None, 0.0, rng.random(), 1.0]) for n in SHARES}
        measures |= {n: rng.choice([None, 0.0, 10 ** rng.uniform(-6, 9)]) for n in AMOUNTS}
        measures["queue_growth"] = rng.choice([None, 0.0, rng.uniform(-1e7, 1e7)])
        measures["max_parallelism"] = rng.choice([None, rng.randint(1, 40)])
        upstream = tuple(up for up in names[:i] if rng.random() < 0.4)
        k = rng.randint(1, 30)
        ops[name] = OperatorSnapshot(name=name, upstream=upstream, parallelism=k, **measures)
    offered = {n: 10 ** rng.uniform(-3, 7) for n in names if rng.random() < 0.8}
    return Snapshot(at=at, offered=FrozenDict(offered), operators=FrozenDict(ops))


def _random_hosts(rng: random.Random) -> FrozenDict[str, HostSnapshot]:
    hosts = {}
    for i in range(rng.randint(1, 5)):
        slices = {
            f"s{i}:{j}": SliceSnapshot(cpu=rng.random() * 0.5, memory=rng.random() * 20)
            for j in range(rng.randint(0, 6))
        }
        capacity = rng.choice([None, rng.random() * 60])
        hosts[f"h{i}"] = HostSnapshot(
            name=f"h{i}", slices=FrozenDict(slices), memory_capacity=capacity
        )
    return FrozenDict(hosts)


@cache
def histories(reads: str, count: int, seed: int) -> list[list[Snapshot]]:
    """The same runs for every policy, made once."""
    return list(_histories(reads, count, seed))


def _histories(reads: str, count: int, seed: int) -> Iterator[list[Snapshot]]:
    """Runs of one to four snapshots, 15 s apart, of one pipeline or set of hosts each."""
    rng = random.Random(seed)
    for _ in range(count):
        length, start = rng.randint(1, 4), rng.uniform(0, 1e5)
        shape = rng.getstate()
        history = []
        for i in range(length):
            if rng.random() < 0.7:  # mostly the same pipeline again, sometimes another one
                inner = random.Random()
                inner.setstate(shape)
            else:
                inner = rng
            history.append(random_snapshot(inner, start + 15.0 * i, reads))
        rng.random()
        yield history


def overloaded(reads: str) -> list[Snapshot]:
    """A minute and a half in which far more comes in than can be carried."""
    ticks = [15.0 * i for i in range(7)]
    if reads == "hosts":
        slices = FrozenDict({f"s{i}": SliceSnapshot(cpu=0.19, memory=1.0) for i in range(5)})
        host = HostSnapshot(name="h1", slices=slices)
        return [Snapshot(at=at, hosts=FrozenDict({"h1": host})) for at in ticks]
    return [_overloaded_pipeline(at) for at in ticks]


def _overloaded_pipeline(at: float) -> Snapshot:
    """Two replicas that take 100 records/s each, and 5,000 records/s offered."""
    source = OperatorSnapshot(
        name="source",
        parallelism=2,
        input_rate=200.0,
        output_rate=200.0,
        busy=1.0,
        idle=0.0,
        backpressured=0.0,
        cpu=0.95,
        queue=4800.0 * (at + 15),
        queue_growth=4800.0,
        input_buffer=1.0,
        service_time_s=0.01,
        service_scv=1.0,
        arrival_scv=1.0,
    )
    return Snapshot(at=at, offered=FrozenDict(source=5000.0), operators=FrozenDict(source=source))


def silent() -> Snapshot:
    """A pipeline of which nothing was measured."""
    a = OperatorSnapshot(name="a", parallelism=4)
    b = OperatorSnapshot(name="b", parallelism=7, upstream=("a",))
    return Snapshot(at=0.0, operators=FrozenDict(a=a, b=b))


def check_same_input_same_answer(policy: Policy) -> None:
    for history in histories(policy.reads, 50, seed=1):
        again = copy.deepcopy(history)
        assert ask(policy, history) == ask(policy, again)


def check_input_is_not_changed(policy: Policy) -> None:
    for history in histories(policy.reads, 50, seed=2):
        before = copy.deepcopy(history)
        applied: list[Decision] = []
        params = quick(policy)
        policy.decide(history, applied, params)
        assert history == before
        assert not applied
        assert params == quick(policy)


def check_every_operator_is_answered_with_a_reason(policy: Policy) -> None:
    for history in histories(policy.reads, 50, seed=3):
        decision = ask(policy, history)
        assert decision.at == history[-1].at
        assert decision.policy == policy.name
        if policy.reads == "hosts":
            assert decision.placement is not None
            assert decision.placement.current == len(history[-1].hosts)
            continue
        assert decision.targets.keys() == history[-1].operators.keys()
        for name, target in decision.targets.items():
            assert target.current == history[-1].operators[name].parallelism
            assert target.reason
            assert isinstance(target.why, str)


def check_holds_on_missing_measures(policy: Policy) -> None:
    if policy.reads == "operators":
        assert ask(policy, [silent()]).changes == {}


def check_survives_anything_and_never_proposes_below_one(policy: Policy) -> None:
    for history in histories(policy.reads, FUZZED, seed=4):
        decision = ask(policy, history)
        for target in decision.targets.values():
            assert isinstance(target.wanted, int)
            assert target.wanted >= 1
        if decision.placement is not None:
            assert decision.placement.wanted >= 1
            homes = {piece for h in history[-1].hosts.values() for piece in h.slices}
            assert {move.slice for move in decision.placement.moves} <= homes


def check_scales_out_when_load_stays_far_above_capacity(policy: Policy) -> None:
    if not policy.reacts:
        return
    history = overloaded(policy.reads)
    answers = [ask(policy, history[: n + 1]) for n in range(len(history))]
    grown = [
        d.placement.wanted > d.placement.current
        if d.placement
        else any(t.wanted > t.current for t in d.targets.values())
        for d in answers
    ]
    assert any(grown), f"{policy.name} never asks for more"


def check_is_documented(policy: Policy) -> None:
    assert policy.summary
    assert policy.paper
    assert (policy.decide.__doc__ or "").strip()
    for described in policy.params.describe():
        assert described.spec.doc


def ask(policy: Policy, history: list[Snapshot]) -> Decision:
    """One answer with quick parameters and nothing carried out before."""
    return policy.decide(history, [], quick(policy))


CHECKS: dict[str, Callable[[Policy], None]] = {
    name.removeprefix("check_").replace("_", " "): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
