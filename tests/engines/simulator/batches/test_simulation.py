"""The batch-level simulator against what can be computed by hand."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from penstock.engines.events import RescaledEvent, RunningEvent
from penstock.engines.port import Batch, Plan
from penstock.engines.simulator.batches.engine import BatchEngine
from penstock.engines.simulator.batches.model import Batches, Costs, fit_costs
from penstock.engines.simulator.batches.task_times import (
    draw_slice_counts,
    even_tasks,
    sliced_tasks,
)
from penstock.engines.simulator.builder import SourceFeed, build_batches
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Monitor, Profile, Rescaling, parse_profile
from penstock.errors import InputError
from penstock.workloads.workload import Workload

QUIET = Batches(fixed_s=0.1, between_s=0.05, poll_s=0.02, look_s=0.0, noise=0.0)


def operator(
    name: str = "map", upstream: tuple[str, ...] = (), **given: object
) -> SimulatedOperator:
    costs = given.pop("costs", Costs(row_s=0.01))
    assert isinstance(costs, Costs)
    plain = SimulatedOperator(
        name=name, upstream=upstream, capacity_rate=1.0, distribution="deterministic", costs=costs
    )
    return replace(plain, **given)  # type: ignore[arg-type]


def make(
    *operators: SimulatedOperator,
    rate: float = 50.0,
    rates: Sequence[float] = (),
    seconds: float = 600.0,
    rules: Batches = QUIET,
    rescaling: Rescaling = Rescaling(scope="nobody"),  # noqa: B008
    seed: int = 1,
) -> BatchEngine:
    pipeline = SimulatedPipeline(name="p", operators=operators)
    profile = Profile(
        name="p",
        resolution="batches",
        batches=rules,
        rescaling=rescaling,
        monitor=Monitor(window_s=10.0),
    )
    load = Workload.of_steps(rates or [rate], step_s=seconds)
    feeds = {op.topic: SourceFeed(load * op.share) for op in operators if not op.upstream}
    return build_batches(pipeline, profile, feeds, seed)


def batches_of(engine: BatchEngine, seconds: float) -> Mapping[str, tuple[Batch, ...]]:
    engine.advance(seconds)
    return engine.status().batches


def test_a_batch_takes_its_overhead_and_its_slowest_task() -> None:
    rules = QUIET.but(per_replica_s=0.02, per_other_s=0.01)
    # 50 rows/s in gaps of 0.52 s: 26 rows of 10 ms on two replicas
    for batch in batches_of(make(operator(replicas=2), rules=rules), 60)["map"][10:]:
        assert batch.longest_s == pytest.approx(-(-batch.rows_in // 2) * 0.01, abs=1e-6)
        lasted_s = batch.committed_s - batch.planned_s
        assert lasted_s == pytest.approx(0.1 + 2 * 0.02 + batch.longest_s, abs=2e-3)


def test_plans_keep_the_least_gap_while_there_is_time() -> None:
    planned = [batch.planned_s for batch in batches_of(make(operator()), 60)["map"][5:]]
    assert np.diff(planned) == pytest.approx(QUIET.gap_s + QUIET.poll_s, abs=0.06)


def test_an_operator_without_enough_replicas_carries_its_capacity() -> None:
    costs = Costs(row_s=0.01, call_s=0.02)
    engine = make(operator(costs=costs, replicas=3), rate=1000.0)
    engine.advance(100)
    before = engine.status().processed_records
    engine.advance(100)
    carried = (engine.status().processed_records - before) / 100
    assert carried == pytest.approx(3 * costs.capacity_rate(QUIET, 3), rel=0.06)


@pytest.mark.parametrize("capacity_rate", [0.5, 5.0, 400.0, 1e6])
def test_costs_by_capacity_give_that_capacity(capacity_rate: float) -> None:
    assert fit_costs(capacity_rate, QUIET).capacity_rate(QUIET) == pytest.approx(capacity_rate)


@pytest.mark.parametrize("look_s", [0.0, 0.03])
def test_latency_is_what_waiting_and_batches_take(look_s: float) -> None:
    engine = make(operator(costs=Costs(row_s=1e-6)), rate=200.0, rules=QUIET.but(look_s=look_s))
    engine.advance(10)
    engine.status()
    engine.advance(200)
    (latency,) = engine.status().latency.values()
    # until its writer writes, until the next look, until the plan, and the batch itself
    expected = 0.05 / 2 + (QUIET.gap_s + QUIET.poll_s) / 2 + look_s + QUIET.fixed_s
    assert latency.mean == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.0, 2.5])
def test_no_row_is_lost_or_made(share: float) -> None:
    first = operator("first", sent={"second": share})
    second = operator("second", ("first",), costs=Costs(row_s=0.002, slices=8), replicas=2)
    engine = make(first, second, rate=77.7, seconds=30.0)
    rows = {"first": 0, "second": 0}
    out = 0
    while not engine.is_drained:
        engine.advance(5)
        status = engine.status()
        known = status.processed_records + status.backlog_records
        assert status.offered_records == known
        for name, some in status.batches.items():
            rows[name] += sum(batch.rows_in for batch in some)
            out += sum(batch.rows_out for batch in some if name == "first")
    assert rows["first"] == Workload.of_steps([77.7], step_s=30.0).total_records
    assert rows["second"] == out == int(rows["first"] * share + 1e-6)


def test_a_join_reads_both_topics() -> None:
    left, right = operator("left", share=0.75), operator("right", share=0.25)
    join = operator("join", ("left", "right"), costs=Costs(row_s=0.001, slices=16))
    engine = make(left, right, join, rate=100.0)
    engine.advance(60)
    seen = engine.observe()
    assert seen.operators["join"].input_rate == pytest.approx(100, rel=0.05)
    assert seen.offered == pytest.approx({"left": 75, "right": 25}, rel=0.05)
    assert list(engine.status().latency) == ["(left | right) > join"]


def test_parts_of_the_output_are_told_where_they_differ() -> None:
    quick = Costs(row_s=0.001)
    first = operator("first", costs=quick, sent={"a": 0.8, "b": 0.2})
    behind = [operator(name, ("first",), costs=quick) for name in "ab"]
    engine = make(first, *behind, rate=100.0)
    engine.advance(60)
    seen = engine.observe()
    assert seen.operators["a"].input_rate == pytest.approx(80, rel=0.05)
    assert seen.arrival_rate("b") == pytest.approx(20, rel=0.05)


def test_rows_that_wait_for_event_time_come_that_much_later() -> None:
    window = operator("window", ("source",), costs=Costs(row_s=1e-5, slices=8, out_delay_s=10.0))
    engine = make(operator("source", costs=Costs(row_s=1e-5)), window, rate=100.0)
    engine.advance(60)
    engine.status()
    engine.advance(60)
    (latency,) = engine.status().latency.values()
    assert 10.5 < latency.mean < 12.5


def test_sessions_show_when_the_load_is_low() -> None:
    costs = Costs(row_s=1e-5, slices=8, out_delay_s=5.0, new_keys=0.02)
    window = operator("window", ("source",), costs=costs)
    last = operator("last", ("window",), costs=Costs(row_s=1e-5))
    first = operator("source", costs=Costs(row_s=1e-5))
    engine = make(first, window, last, rates=(200.0, 10.0), seconds=60.0)
    shown = {False: 0, True: 0}
    while not engine.is_drained:
        engine.advance(1)
        some = engine.status().batches.get("last", ())
        shown[engine.at > 60] += sum(batch.rows_in for batch in some)
    # of at most 240 keys 1,000 rows follow in 5 s, then 50
    assert shown[False] < 60 < 400 < shown[True]


def test_a_state_that_has_to_fill_leaves_nothing_behind_at_first() -> None:
    window = operator("window", ("source",), costs=Costs(row_s=1e-5, slices=8, first_rows=777))
    last = operator("last", ("window",), costs=Costs(row_s=1e-5))
    engine = make(operator("source", costs=Costs(row_s=1e-5)), window, last, seconds=30.0)
    rows = {"window": 0, "last": 0}
    while not engine.is_drained:
        engine.advance(1)
        for name, some in engine.status().batches.items():
            if name in rows:
                rows[name] += sum(batch.rows_in for batch in some)
    assert rows == {"window": 1500, "last": 1500 - 777}


def test_a_change_runs_from_the_next_plan_on() -> None:
    engine = make(operator(), rate=40.0)
    engine.advance(20)
    engine.status()
    engine.apply(Plan(replicas={"map": 4}))
    engine.advance(5)
    status = engine.status()
    replicas = [batch.replicas for batch in status.batches["map"]]
    assert replicas == sorted(replicas)
    assert replicas[-1] == 4
    assert replicas.count(1) <= 1
    (event,) = status.events
    assert isinstance(event, RunningEvent)
    assert event.after_s is not None and 0 <= event.after_s < 1.2


def test_a_full_queue_holds_the_operator_in_front() -> None:
    quick = operator("quick", costs=Costs(row_s=0.001))
    slow = operator("slow", ("quick",), costs=Costs(row_s=0.02), queue_limit=100)
    engine = make(quick, slow, rate=200.0)
    engine.advance(60)
    seen = engine.observe().operators
    # 1 s of work, 0.1 s around it and 0.05 s between: 50 rows take 1.15 s, a fifth of what comes
    assert seen["slow"].input_rate == pytest.approx(50 / 1.15, rel=0.1)
    assert seen["quick"].backpressured == pytest.approx(0.9, abs=0.1)
    assert seen["slow"].backpressured == 0.0
    assert seen["slow"].input_buffer is not None
    assert seen["slow"].input_buffer > 0.5
    # one batch may go over the limit; the rest waits where it came in
    assert (seen["slow"].queue or 0) < 2000 < (seen["quick"].queue or 0)


def test_without_limits_nobody_knows_of_back_pressure() -> None:
    engine = make(operator("quick"), operator("slow", ("quick",), costs=Costs(row_s=0.1)))
    engine.advance(30)
    assert [op.backpressured for op in engine.observe().operators.values()] == [None, None]


def test_a_native_operator_stands_still_for_its_change() -> None:
    rescaling = Rescaling(scope="native", pause_s=4.0)
    first = operator("first")
    native = operator("second", ("first",), native=True)
    engine = make(first, native, rescaling=rescaling)
    assert engine.capabilities.pauses == {"second"}
    engine.advance(20)
    engine.status()
    engine.apply(Plan(replicas={"first": 2, "second": 3}))
    engine.advance(20)
    status = engine.status()
    planned = [batch.planned_s for batch in status.batches["second"]]
    assert max(np.diff(planned)) == pytest.approx(4.0, abs=0.8)
    assert max(np.diff([b.planned_s for b in status.batches["first"]])) < 0.7
    (rescaled,) = [event for event in status.events if isinstance(event, RescaledEvent)]
    assert rescaled.replicas == 3
    assert status.running == {"first": 2, "second": 3}


def test_replicas_that_were_added_warm_up() -> None:
    rescaling = Rescaling(scope="nobody", warmup_s=5.0, warmup_speed=0.25)
    engine = make(operator(), rate=100.0, rescaling=rescaling)
    engine.advance(20)
    engine.apply(Plan(replicas={"map": 2}))
    engine.status()
    some = batches_of(engine, 15)["map"]
    slow = [b.longest_s / b.rows_in for b in some if b.replicas == 2]
    assert slow[0] > 1.5 * slow[-1]


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    rules = Batches(noise=0.3)
    runs = [
        batches_of(make(operator(scv=0.5, distribution="gamma"), rules=rules, seed=seed), 60)
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_many_rows_cost_no_more_than_few() -> None:
    engine = make(operator(costs=Costs(row_s=2e-7)), rate=1e6)
    engine.advance(30)
    assert engine.status().processed_records > 28e6


# --- tasks


def test_even_tasks_differ_by_one_row() -> None:
    tasks = even_tasks(Costs(row_s=0.01), 0.0, [7, 9, 3], [1.0] * 4, np.random.default_rng(1))
    assert sorted(task.rows_in for task in tasks) == [4, 5, 5, 5]
    assert [task.busy_s for task in tasks] == pytest.approx([t.rows_in * 0.01 for t in tasks])
    # a chunk ends where a commit or a task does
    assert sum(task.chunks for task in tasks) == 6


def test_single_rows_vary_as_they_are_told_to() -> None:
    draw = np.random.default_rng(5)
    costs = Costs(row_s=0.01, chunk_rows=4)
    tasks = [even_tasks(costs, 0.6, [40], [1.0], draw)[0] for _ in range(2000)]
    busy = np.array([task.busy_s for task in tasks])
    assert busy.mean() == pytest.approx(0.4, rel=0.02)
    assert busy.var() == pytest.approx(40 * 0.6 * 0.01**2, rel=0.12)
    assert {task.chunks for task in tasks} == {10}


def test_rows_fall_into_slices_in_clumps() -> None:
    draw = np.random.default_rng(5)
    for rows in (0, 1, 5, 600):
        assert draw_slice_counts(rows, 3.0, [1 / 16] * 16, draw).sum() == rows
    single = np.array([draw_slice_counts(640, 1.0, [1 / 64] * 64, draw) for _ in range(300)])
    clumps = np.array([draw_slice_counts(640, 4.0, [1 / 64] * 64, draw) for _ in range(300)])
    assert single.var() == pytest.approx(10, rel=0.1)
    assert clumps.var() == pytest.approx(40, rel=0.1)


def test_a_slice_is_worked_on_where_it_is_at_home() -> None:
    costs = Costs(row_s=0.01, call_s=0.5, slice_s=0.1, crowd_s=0.05, slices=4)
    tasks = sliced_tasks(
        costs, 0.0, 400, [0.25] * 4, [0, 1, 0, 1], [1.0, 1.0], np.random.default_rng(1)
    )
    assert [task.slices for task in tasks] == [(0, 2), (1, 3)]
    for task in tasks:
        assert sum(task.counts) == task.rows_in
        assert task.busy_s == pytest.approx(0.5 + 2 * 0.15 + 0.01 * task.rows_in)
        assert sum(task.loads) == pytest.approx(task.busy_s - 0.5)


# --- files, imports


def with_costs(**costs: object) -> dict[str, object]:
    return {"pipelines": {"q": {"operators": {"a": {"capacity_rate": 9.0, "costs": costs}}}}}


def test_a_profile_may_hold_measured_pipelines() -> None:
    told = {"resolution": "batches", **with_costs(row_s=0.1, slices=4)}
    (op,) = parse_profile("p", told).pipelines["q"].operators
    assert op.costs == Costs(row_s=0.1, slices=4)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"resolution": "batch"}, "resolution"),
        ({"batches": {"gap": 1}}, "batches.gap"),
        (with_costs(rows=1), "pipelines.q.operators.a.costs.rows"),
        (with_costs(slice_s=1), "pipelines.q.operators.a.costs.slices"),
    ],
)
def test_a_mistake_in_a_profile_is_named(changes: Mapping[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_profile("p", changes)
    assert caught.value.field == field


def test_shares_of_slices_must_be_as_many_as_slices() -> None:
    with pytest.raises(InputError, match="must be 4"):
        make(operator(costs=Costs(row_s=0.1, slices=4), slice_shares=(0.5, 0.5)))


def test_it_needs_no_spark() -> None:
    code = (
        "import sys, penstock.engines.simulator.batches.engine, penstock.twin.twin;"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_commands_that_need_no_batches_do_not_load_arrow() -> None:
    code = (
        "import sys, penstock.engines.simulator.builder, penstock.engines.simulator.library;"
        "assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
