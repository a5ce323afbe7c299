"""What a policy would have answered: its own run is answered as it was."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import ONE_MORE, FakeEngine

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.control.registry import builtin_policies
from penstock.core.decision import Decision, Target
from penstock.core.guards import Guards
from penstock.core.policy import Applied, History, Policy
from penstock.core.reasons import Reason
from penstock.runs.replay import ReplayAnswer, recall, replay, summary, wanted
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.runs.tick_json import tick_from_json, tick_to_json

pytestmark = pytest.mark.slow

POLICIES = sorted(name for name, p in builtin_policies().items() if p.reads == "operators")


def answers(spec: SimulationSpec) -> list[ReplayAnswer]:
    """Replay a run's journal with the policy that ran."""
    ticks = [tick_from_json(tick_to_json(tick)) for tick in prepare_simulation(spec).ticks()]
    return list(replay(ticks, prepare_simulation(spec).decider()))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("engine", ["flink", "spark"])
def test_the_policy_that_ran_answers_as_it_did(policy: str, engine: str) -> None:
    found = answers(SimulationSpec(policy=policy, engine=engine, minutes=12, initial=3))
    assert found
    for answer in found:
        again, then = answer.other, answer.recorded
        assert again.to_json(with_numbers=True) == then.to_json(with_numbers=True)


@given(
    policy=st.sampled_from(["ds2", "dhalion", "hpa-cpu", "hpa-varga", "flink"]),
    seed=st.integers(0, 10**6),
    cooldown_s=st.sampled_from([0, 60, 300]),
    stabilise_s=st.sampled_from(["off", 45, 240]),
    missing=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=15)
def test_whatever_the_run_the_policy_that_ran_answers_as_it_did(
    policy: str, seed: int, cooldown_s: float, stabilise_s: object, missing: float
) -> None:
    spec = SimulationSpec(
        policy=policy,
        workload="random",
        seed=seed,
        minutes=10,
        guards={"cooldown_s": cooldown_s, "stabilise_s": stabilise_s},
        profile={"monitor.missing": missing, "loop.sleeps": False},
    )
    assert all(
        answer.other.to_json(with_numbers=True) == answer.recorded.to_json(with_numbers=True)
        for answer in answers(spec)
    )


def run(**engine: set[float]) -> list[Tick]:
    schedule = LoopSchedule(duration_s=90.0, interval_s=15.0)
    guards = Guards(cooldown_s=30.0)
    return list(run_loop(FakeEngine(**engine), Decider(ONE_MORE, guards=guards), schedule))


def test_ticks_without_a_snapshot_are_not_answered() -> None:
    found = list(replay(run(not_ready={30.0, 45.0}), Decider(ONE_MORE)))
    assert [answer.at for answer in found] == [15, 60, 75, 90]


def test_another_policy_finds_carried_out_what_was_recorded_and_not_what_it_answers() -> None:
    seen: list[list[float]] = []

    def decide(history: History, applied: Applied, _params: object) -> Decision:
        seen.append([decision.at for decision in applied])
        return Decision(history[-1].at, "nosy", {"map": Target(1, 99, Reason.FITS)})

    nosy = Policy(name="nosy", summary="", paper="", decide=decide)
    ticks = run(refuses={15.0})
    assert [tick.at for tick in ticks if tick.applied] == [30, 60, 90]
    list(replay(ticks, Decider(nosy)))
    assert seen == [[], [], [30], [30], [30, 60], [30, 60]]


def test_the_summary_counts_equal_answers_and_means() -> None:
    def decision(source: int, sink: int) -> Decision:
        targets = {"source": Target(2, source, ""), "sink": Target(1, sink, "")}
        return Decision(0.0, "p", targets)

    pairs = [((2, 1), (2, 1)), ((3, 1), (2, 1)), ((3, 1), (4, 3)), ((4, 1), (4, 1))]
    found = [
        ReplayAnswer(at=float(i), recorded=decision(*then), other=decision(*now))
        for i, (then, now) in enumerate(pairs)
    ]
    assert [answer.same for answer in found] == [True, False, False, True]
    assert wanted(found[2].other) == {"source": 4, "sink": 3}
    assert summary(found) == {
        "ticks": 4,
        "same_share": 0.5,
        "wanted": {"recorded": 4.0, "other": 4.5},
        "changes": {"recorded": 3, "other": 2},
        "operators": {
            "source": {"same_share": 0.5, "wanted": {"recorded": 3.0, "other": 3.0}},
            "sink": {"same_share": 0.75, "wanted": {"recorded": 1.0, "other": 1.5}},
        },
    }


def test_a_run_without_snapshots_has_an_empty_summary() -> None:
    (tick, *_) = run()
    found = list(replay([replace(tick, snapshot=None, decision=None)], Decider(ONE_MORE)))
    assert found == [] and summary(found)["same_share"] is None


def test_the_replayed_snapshots_are_the_recorded_ones() -> None:
    shown = [answer.other.targets["map"].current for answer in replay(run(), Decider(ONE_MORE))]
    assert shown == [1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize("policy", ["flink", "hpa-varga", "psps", "dhalion"])
def test_a_run_that_is_resumed_decides_as_if_it_had_never_been_ended(policy: str) -> None:
    spec = SimulationSpec(
        policy=policy,
        minutes=30,
        initial=3,
        guards={"cooldown_s": 100, "stabilise_s": 120},
        profile={"loop.sleeps": False},
    )
    prepared = prepare_simulation(spec)
    whole = [tick_to_json(tick) for tick in prepared.ticks()]
    engine, schedule, parts = prepared.engine(), prepared.schedule, []
    for ends_s in (405.0, 1005.0, schedule.duration_s):
        decider = prepare_simulation(spec).decider()
        recall([tick_from_json(line) for line in parts], decider)
        start_s = parts[-1]["at"] if parts else 0.0
        part = replace(schedule, start_s=start_s, duration_s=ends_s)
        parts += [tick_to_json(tick) for tick in run_loop(engine, decider, part)]
    assert sum(line.get("applied", False) for line in whole) >= 1
    assert parts == whole


def test_what_a_policy_failed_at_it_has_seen_when_it_is_replayed() -> None:
    seen: list[list[float]] = []

    def decide(history: History, _applied: Applied, _params: object) -> Decision:
        seen.append([snapshot.at for snapshot in history])
        if history[-1].at == 30:
            raise ValueError
        return ONE_MORE.decide(history, _applied, _params)

    nosy = replace(ONE_MORE, decide=decide, lookback_s=lambda _params: 1000.0)
    schedule = LoopSchedule(duration_s=60.0, interval_s=15.0)
    ticks = list(run_loop(FakeEngine(), Decider(nosy), schedule))
    assert [tick.decision is None for tick in ticks] == [False, True, False, False]
    then, seen[:] = [*seen], []
    assert all(answer.same for answer in replay(ticks, Decider(nosy)))
    assert seen == [then[0], then[2], then[3]] == [[15], [15, 30, 45], [15, 30, 45, 60]]
