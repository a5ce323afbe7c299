"""The record-level simulator loses count of nothing and repeats itself exactly."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.simulator.factories import poisson

from penstock.engines.simulator.records.model import (
    QUEUES,
    RecordOperator,
    RecordPipeline,
    RecordRules,
)
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.engines.simulator.records.totals import ServedRecord, Totals


@st.composite
def diamonds(draw: st.DrawFn) -> RecordPipeline:
    """A split, a join and an edge that multiplies, with every kind of queue and rule."""

    def operator(name: str, upstream: str, **sent: float) -> RecordOperator:
        mean_s = draw(st.sampled_from([0.0, 0.3, 1.0]))
        kind = draw(st.sampled_from(["exponential", "deterministic"]))
        return RecordOperator(
            name=name,
            upstream=tuple(upstream),
            service=ServiceTime(distribution=kind, mean_s=mean_s),
            replicas=draw(st.integers(1, 3)),
            queue=draw(st.sampled_from(QUEUES)),
            queue_size=draw(st.sampled_from([None, 0, 2, 5])),
            sent=sent,
        )

    shares = st.sampled_from([0.0, 0.4, 0.6, 1.0, 1.7])
    return RecordPipeline(
        operators=(
            operator("a", "", b=draw(shares), c=draw(shares)),
            operator("b", "a", d=draw(shares)),
            operator("c", "a"),
            operator("d", "bc"),
        ),
        rules=RecordRules(
            timeout_s=draw(st.sampled_from([None, 2.0])),
            interval_s=5,
            startup_s=draw(st.sampled_from([0.0, 1.5])),
            restart_s=draw(st.sampled_from([None, None, 2.0])),
        ),
    )


Steps = list[tuple[float, str, int]]
STEPS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 3.1, 7.0]), st.sampled_from("abcd"), st.integers(1, 4)),
    max_size=5,
)
SEEDS = st.integers(0, 9)


def start(pipeline: RecordPipeline, seed: int, trace: list[ServedRecord]) -> RecordSimulator:
    return RecordSimulator(pipeline, {"a": poisson(3, 40, seed)}, seed, trace)


def ask(run: RecordSimulator, name: str, wanted: int) -> None:
    if run.resume_s is None:
        run.set_replicas(name, wanted)


def check_conservation(run: RecordSimulator) -> None:
    totals, tally = run.totals(), run.tally()
    for name, op in run.pipeline.topology.upstream.items():
        seen = totals[name]
        came = sum(totals[feeder].sent[name] for feeder in op) if op else tally.offered
        assert came == seen.arrived
        assert seen.arrived == seen.completed + seen.waiting + seen.in_service + seen.all_dropped
    held = sum(seen.waiting + seen.in_service for seen in totals.values())
    gone = tally.delivered + tally.filtered + tally.dropped
    assert tally.offered == gone + tally.in_flight
    assert (tally.in_flight > 0) == (held > 0)
    assert 0 <= tally.in_flight <= held
    if all(sum(op.sent.values()) <= 1 for op in run.pipeline.operators):
        assert tally.in_flight == held  # nothing was multiplied


@settings(max_examples=60, deadline=None)
@given(pipeline=diamonds(), steps=STEPS, seed=SEEDS)
def test_no_record_is_lost_or_doubled_at_any_instant(
    pipeline: RecordPipeline, steps: Steps, seed: int
) -> None:
    run = start(pipeline, seed, [])
    for pause_s, name, wanted in steps:
        run.advance(run.now_s + pause_s)
        check_conservation(run)
        ask(run, name, wanted)
        check_conservation(run)
    run.advance(1e6)
    check_conservation(run)
    assert run.tally().offered == 40
    assert run.tally().in_flight == 0


def played(
    pipeline: RecordPipeline, steps: Steps, seed: int, cut_s: float
) -> tuple[list[ServedRecord], dict[str, Totals]]:
    trace: list[ServedRecord] = []
    run = start(pipeline, seed, trace)
    at_s = 0.0
    for pause_s, name, wanted in [*steps, (40.0, "a", 1)]:
        at_s += pause_s
        while run.now_s + cut_s < at_s:
            run.advance(run.now_s + cut_s)
            run.totals()
        run.advance(at_s)
        ask(run, name, wanted)
    return trace, run.totals()


@settings(max_examples=40, deadline=None)
@given(pipeline=diamonds(), steps=STEPS, seed=SEEDS, cut_s=st.sampled_from([0.37, 1.0, 9.0]))
def test_a_run_is_the_same_bit_for_bit_however_it_is_cut(
    pipeline: RecordPipeline, steps: Steps, seed: int, cut_s: float
) -> None:
    assert played(pipeline, steps, seed, cut_s) == played(pipeline, steps, seed, 1e9)


def test_another_seed_is_another_run() -> None:
    pipeline = RecordPipeline(operators=(RecordOperator(name="a"),))
    first, second = ([], [])  # type: tuple[list[ServedRecord], list[ServedRecord]]
    RecordSimulator(pipeline, {"a": [0.0]}, 1, first).advance(9)
    RecordSimulator(pipeline, {"a": [0.0]}, 2, second).advance(9)
    assert first != second
