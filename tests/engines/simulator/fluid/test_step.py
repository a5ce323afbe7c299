"""The fluid model: conservation, back-pressure, pauses, retention, theory, and the monitor."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.events import DroppedEvent
from penstock.engines.port import Plan
from penstock.engines.simulator.fluid.engine import FluidEngine
from penstock.engines.simulator.fluid.monitor import gauge_rate
from penstock.engines.simulator.fluid.step import FluidFlow, Load, Network, step
from penstock.engines.simulator.library import load_pipeline, load_profile, pipelines, profiles
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile, parse_profile, with_changes
from penstock.errors import InputError, NotReadyError, RescaleError


def chain(*capacities: float, replicas: int = 1, **fields: float) -> SimulatedPipeline:
    operators = tuple(
        SimulatedOperator(
            name=f"o{i}",
            upstream=(f"o{i - 1}",) if i else (),
            capacity_rate=capacity,
            replicas=replicas,
            **fields,
        )
        for i, capacity in enumerate(capacities)
    )
    return SimulatedPipeline(name="chain", operators=operators)


def engine(pipeline: SimulatedPipeline, rate: int, profile: Profile | None = None) -> FluidEngine:
    profile = profile or Profile(name="plain", summary="")
    return FluidEngine(pipeline, profile, {pipeline.names[0]: [rate] * 3600})


@st.composite
def networks(draw: st.DrawFn) -> tuple[SimulatedPipeline, float | None]:
    names = [f"o{i}" for i in range(draw(st.integers(1, 5)))]
    shares = st.just(1.0) | st.floats(0, 3)
    upstream = {n: tuple(u for u in names[:i] if draw(st.booleans())) for i, n in enumerate(names)}
    operators = tuple(
        SimulatedOperator(
            name=name,
            upstream=upstream[name],
            capacity_rate=draw(st.floats(0.3, 500)),
            sent=FrozenDict({d: draw(shares) for d in names if name in upstream[d]}),
        )
        for name in names
    )
    buffer_s = draw(st.none() | st.floats(0.1, 5))
    return SimulatedPipeline(name="any", operators=operators), buffer_s


@settings(max_examples=60)
@given(networks(), st.data())
def test_no_record_is_lost_or_made_at_any_step(
    case: tuple[SimulatedPipeline, float | None], data: st.DataObject
) -> None:
    pipeline, buffer_s = case
    network = Network.of(pipeline, buffer_s)
    flows = network.start()
    for _ in range(data.draw(st.integers(1, 25))):
        loads = [
            Load(
                data.draw(st.integers(0, 400)) if not network.feeders[i] else 0,
                data.draw(st.integers(1, 5)),
                data.draw(st.sampled_from([0.0, 0.5, 1.0])),
            )
            for i in range(len(flows))
        ]
        flows = step(network, flows, loads, 1.0)
        _check_conservation(network, flows)


def _check_conservation(network: Network, flows: tuple[FluidFlow, ...]) -> None:
    received = [0] * len(flows)
    for i, flow in enumerate(flows):
        assert flow.arrived == flow.processed + flow.queue + flow.dropped
        assert flow.queue >= 0
        for (target, share), sent, carried in zip(
            network.edges[i], flow.sent, flow.carried, strict=True
        ):
            received[target] += sent
            assert sent + carried == pytest.approx(flow.processed * share, abs=1e-6)
            assert 0 <= carried < 1
    for i, flow in enumerate(flows):
        if network.feeders[i]:
            assert flow.arrived == received[i]


def test_back_pressure_walks_up_to_the_topic() -> None:
    run = engine(chain(300, 300, 100), 200, Profile(name="x", summary="", queues=_buffer(1.0)))
    run.advance(600)
    seen = run.observe().operators
    assert [round(op.input_rate or 0) for op in seen.values()] == [100, 100, 100]
    assert [(op.backpressured or 0) > 0.5 for op in seen.values()] == [True, True, False]
    assert seen["o2"].busy == pytest.approx(1.0, abs=0.01)
    assert seen["o2"].input_buffer == pytest.approx(1.0, abs=0.1)
    assert run.flows["o0"].queue == pytest.approx(100 * 600, rel=0.05)
    assert run.flows["o1"].queue <= 300


def _buffer(seconds: float):
    return parse_profile("x", {"queues": {"buffer_s": seconds}}).queues


def test_shares_add_up() -> None:
    run = engine(chain(300, 100), 150, Profile(name="x", summary="", queues=_buffer(1.0)))
    run.advance(300)
    for op in run.observe().operators.values():
        assert (op.busy or 0) + (op.idle or 0) + (op.backpressured or 0) == pytest.approx(1)


def test_a_backlog_is_as_old_as_its_rate_says() -> None:
    """Offered 200, taken 100: after t seconds the records taken were offered at t / 2."""
    run = engine(chain(100), 200)
    run.advance(400)
    run.status()
    run.advance(10)
    assert run.status().age_s == pytest.approx(205, abs=3)


def test_retention_drops_what_is_too_old_and_counts_it() -> None:
    profile = parse_profile("x", {"queues": {"retention_s": 60.0}})
    run = engine(chain(100), 200, profile)
    run.advance(600)
    status = run.status()
    assert status.dropped_records > 0
    assert status.backlog_records <= 200 * 61
    total = status.processed_records + status.dropped_records + status.backlog_records
    assert status.offered_records == total
    assert any(isinstance(event, DroppedEvent) for event in status.events)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=60),
    st.integers(1, 20),
    st.sampled_from([0.0, 5.0, 10.0]),
    st.lists(st.integers(1, 4), max_size=3),
)
def test_the_topic_holds_what_the_operator_has_waiting(
    rates: list[int], retention_s: int, block_s: float, changes: list[int]
) -> None:
    """Whatever is offered, dropped or changed, no record is both taken and dropped."""
    queues = {"retention_s": float(retention_s), "retention_block_s": block_s}
    rules = {"queues": queues, "rescaling": {"scope": "job", "pause_s": 4.0}}
    run = FluidEngine(chain(100), parse_profile("x", rules), {"o0": rates})
    for k in (1, *changes):
        if k != run.status().running["o0"]:
            run.apply(Plan(replicas={"o0": k}))
        for _ in range(20):
            run.advance(1)
            assert run._topics[0].waiting == run.flows["o0"].queue >= 0
    status = run.status()
    total = status.processed_records + status.dropped_records + status.backlog_records
    assert status.offered_records == total


def test_retention_in_blocks_keeps_records_longer() -> None:
    sharp = engine(chain(100), 400, parse_profile("x", {"queues": {"retention_s": 60.0}}))
    blocks = {"queues": {"retention_s": 60.0, "retention_block_s": 60.0}}
    coarse = engine(chain(100), 400, parse_profile("x", blocks))
    for run in (sharp, coarse):
        run.advance(599)
    assert coarse.status().backlog_records > sharp.status().backlog_records


def test_a_job_stands_still_while_it_is_rescaled() -> None:
    profile = parse_profile("x", {"rescaling": {"scope": "job", "pause_s": 30.0}})
    run = engine(chain(100, 100), 80, profile)
    run.advance(60)
    before = run.flows["o0"].processed
    run.apply(Plan(replicas={"o1": 3}))
    run.advance(20)
    with pytest.raises(RescaleError):
        run.apply(Plan(replicas={"o1": 2}))
    run.advance(10)
    assert run.flows["o0"].processed == before
    run.advance(10)
    assert run.flows["o0"].processed > before


def test_nothing_is_observed_during_a_restart_and_windows_begin_anew() -> None:
    profile = parse_profile("x", {"rescaling": {"scope": "job", "pause_s": 30.0}})
    run = engine(chain(100), 80, profile)
    run.advance(60)
    run.apply(Plan(replicas={"o0": 2}))
    run.advance(20)
    with pytest.raises(NotReadyError):
        run.observe()
    run.advance(12)
    with pytest.raises(NotReadyError):
        run.observe()
    run.advance(20)
    assert run.observe().operators["o0"].parallelism == 2
    assert run.status().pause_s == 30


def test_more_state_takes_longer_to_move() -> None:
    rules = {"rescaling": {"scope": "job", "pause_s": 10.0, "pause_s_per_gb": 10.0}}
    for state_mb, pause in ((0.0, 10.0), (2000.0, 30.0)):
        run = engine(chain(100, state_mb=state_mb), 80, parse_profile("x", rules))
        run.advance(30)
        run.apply(Plan(replicas={"o0": 2}))
        run.advance(60)
        assert run.status().pause_s == pause


def test_only_native_operators_pause_on_spark() -> None:
    profile = load_profile("spark")
    plain, native = chain(100, 100), chain(100, 100, native=True)
    assert engine(plain, 10, profile).capabilities.pauses == frozenset()
    assert engine(native, 10, profile).capabilities.pauses == {"o0", "o1"}


def test_new_replicas_warm_up() -> None:
    rules = {"rescaling": {"scope": "nobody", "warmup_s": 20.0, "warmup_speed": 0.5}}
    run = engine(chain(100), 400, parse_profile("x", rules))
    run.advance(30)
    run.apply(Plan(replicas={"o0": 3}))
    run.advance(1)
    first = run.flows["o0"].processed
    run.advance(1)
    assert run.flows["o0"].processed - first == pytest.approx(205, abs=6)
    run.advance(60)
    cold = run.flows["o0"].processed
    run.advance(1)
    assert run.flows["o0"].processed - cold == pytest.approx(300, abs=2)


def test_a_restart_that_drops_queues_counts_what_it_drops() -> None:
    rules = {"rescaling": {"scope": "job", "pause_s": 5.0, "drops_queues": True}}
    run = engine(chain(100, 50), 90, parse_profile("x", rules))
    run.advance(60)
    waiting = sum(flow.queue for flow in run.flows.values())
    assert waiting > 0
    run.apply(Plan(replicas={"o1": 2}))
    run.advance(1)
    assert run.status().dropped_records == waiting


def test_micro_batches_put_a_floor_under_latency() -> None:
    batches = engine(chain(100, 100), 50, parse_profile("x", {"queues": {"batch_s": 1.0}}))
    batches.advance(60)
    (latency,) = batches.status().latency.values()
    assert latency.mean == pytest.approx(2.0, abs=0.1)


def test_a_deterministic_queue_drains_as_fast_as_arithmetic_says() -> None:
    """Offered 150, one replica takes 100; after 60 s two take 200: 3000 wait, 60 s to drain."""
    run = engine(chain(100), 150)
    run.advance(60)
    run.apply(Plan(replicas={"o0": 2}))
    run.advance(55)
    assert run.flows["o0"].queue == pytest.approx(250, abs=60)
    run.advance(10)
    assert run.flows["o0"].queue == 0


@pytest.mark.parametrize(
    ("points", "rate"),
    [
        ([(0, 100.0), (5, 110.0), (10, 120.0)], 2.0),
        ([(0, 100.0), (5, 90.0), (10, 80.0)], 17.0),
        ([(0, 5.0), (10, 5.0)], 0.0),
    ],
)
def test_rate_over_a_gauge_takes_draining_for_growing(points: list, rate: float) -> None:
    assert gauge_rate(points) == rate


def test_a_monitor_shows_less_than_the_truth() -> None:
    flawed = {"monitor": {"busy_sees": 0.5, "cpu_floor": 0.1, "cpu_ceiling": 0.9}}
    run = engine(chain(100), 100, parse_profile("x", flawed))
    run.advance(60)
    op = run.observe().operators["o0"]
    assert op.busy == pytest.approx(0.5, abs=0.01)
    assert op.idle == pytest.approx(0.5, abs=0.01)
    assert op.cpu == pytest.approx(0.9, abs=0.01)


def test_scrapes_that_fail_leave_a_window_with_fewer() -> None:
    run = engine(chain(100), 80, parse_profile("x", {"monitor": {"missing": 0.4}}))
    shown = 0
    for _ in range(100):
        run.advance(15)
        try:
            assert run.observe().operators["o0"].input_rate == pytest.approx(80, abs=1)
            shown += 1
        except NotReadyError:
            pass
    assert 20 < shown < 100


@pytest.mark.parametrize("name", profiles())
def test_every_profile_is_read_and_says_what_it_is(name: str) -> None:
    assert load_profile(name).summary


@pytest.mark.parametrize("name", pipelines())
def test_every_pipeline_is_read_and_reached(name: str) -> None:
    assert all(visits > 0 for visits in load_pipeline(name).visits().values())


def test_a_profile_s_mistakes_are_named() -> None:
    for data, field in (
        ({"moniter": {}}, "moniter"),
        ({"monitor": {"busi_sees": 1}}, "monitor.busi_sees"),
        ({"monitor": {"busy_sees": 2}}, "monitor.busy_sees"),
        ({"monitor": {"dhalion": {"busi_sees": 1}}}, "monitor.dhalion.busi_sees"),
    ):
        with pytest.raises(InputError) as caught:
            parse_profile("x", data)
        assert caught.value.field == field
    with pytest.raises(InputError, match="unknown engine 'flinc'"):
        load_profile("flinc")
    with pytest.raises(InputError, match="there is no file"):
        load_pipeline("./none.toml")


def test_single_numbers_of_a_profile_can_be_changed() -> None:
    flink = load_profile("flink")
    changed = with_changes(flink, {"monitor.lag_slope": "regression", "rescaling.pause_s": 1})
    assert flink.monitor_of("dhalion").lag_slope == "gauge-rate"
    assert changed.monitor_of("dhalion").lag_slope == "regression"
    assert changed.rescaling.pause_s == 1
    for path, value in (("monitor", 3), ("queues.hop", 1), ("queues.hop_s", -1)):
        with pytest.raises(InputError) as caught:
            with_changes(flink, {path: value})
        assert caught.value.field == f"profile.{path}"


@pytest.mark.parametrize(
    ("engine", "path"),
    [
        ("flink", "queues.queue_size"),
        ("flink", "batches.fixed_s"),
        ("pulsar", "monitor.busy_sees"),
        ("storm-restart", "rescaling.drops_queues"),
        ("spark", "queues.hop_s"),
        ("spark", "monitor.scrape_s"),
    ],
)
def test_numbers_that_would_change_nothing_are_refused(engine: str, path: str) -> None:
    profile, (section, name) = load_profile(engine), path.split(".")
    value = getattr(getattr(profile, section), name)
    with pytest.raises(
        InputError, match=f"changes nothing at resolution {profile.resolution}"
    ) as caught:
        with_changes(profile, {path: value})
    assert caught.value.field == f"profile.{path}"
    with pytest.raises(InputError) as caught:
        parse_profile("x", {"resolution": profile.resolution, section: {name: value}})
    assert caught.value.field == path


def test_a_pipeline_as_one_job_costs_the_sum_of_its_parts() -> None:
    job = chain(100, 50).as_one_job()
    assert job.operators[0].capacity_rate == pytest.approx(1 / (1 / 100 + 1 / 50))
    with pytest.raises(InputError, match="unknown operator"):
        chain(100).starting_with({"o9": 3})
