"""Every worked example of the published policies, and what they do without evidence."""

from typing import Any

import pytest
from tests.builders import bare, op, snap

from penstock.control.registry import builtin_policies
from penstock.core.decision import Decision
from penstock.core.instance_decision import DecentralizedParams, decide_alone, ideal
from penstock.core.policy import Applied
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot

POLICIES = builtin_policies()


def ask(name: str, *history: Snapshot, applied: Applied = (), **params: Any) -> Decision:
    policy = POLICIES[name]
    return policy.decide(list(history), list(applied), policy.params.parse(params))


def wanted(name: str, *history: Snapshot, **params: Any) -> dict[str, int]:
    return {n: t.wanted for n, t in ask(name, *history, **params).targets.items()}


def reason(name: str, *history: Snapshot, **params: Any) -> dict[str, str]:
    return {n: t.reason for n, t in ask(name, *history, **params).targets.items()}


# threshold


@pytest.mark.parametrize(
    ("queue", "k", "expected"),
    [(151, 3, 4), (150, 3, 3), (51, 3, 3), (50, 3, 2), (50, 1, 1), (0, 2, 1)],
)
def test_threshold(queue: float, k: int, expected: int) -> None:
    assert wanted("threshold", snap(bare(k=k, queue=queue))) == {"map": expected}


def test_threshold_stops_at_the_maximum() -> None:
    assert reason("threshold", snap(bare(k=3, queue=999, max_parallelism=3))) == {
        "map": Reason.AT_MAXIMUM
    }


# queueing


@pytest.mark.parametrize(("r_max", "expected"), [(1.0, 4), (0.6, 5)])
def test_queueing_finds_the_smallest_number_that_meets_the_objective(
    r_max: float, expected: int
) -> None:
    now = snap(bare(k=1, service_time_s=0.5), offered=6)
    assert wanted("queueing", now, scope="function", r_max=r_max) == {"map": expected}


def test_queueing_takes_the_maximum_if_nothing_meets_the_objective() -> None:
    now = snap(bare(k=1, service_time_s=0.5, max_parallelism=9), offered=6)
    assert wanted("queueing", now, scope="function", r_max=0.4) == {"map": 9}
    now = snap(bare(k=9, service_time_s=0.5, max_parallelism=9), offered=60)
    assert reason("queueing", now, scope="function", r_max=0.6) == {"map": Reason.AT_MAXIMUM}


def test_queueing_holds_if_nothing_could_ever_meet_the_objective() -> None:
    now = snap(bare(k=2, service_time_s=0.5), offered=6)
    assert reason("queueing", now, scope="function", r_max=0.4) == {
        "map": Reason.OBJECTIVE_UNREACHABLE
    }


def chain(*stations: tuple[int, float], offered: float = 1.0) -> Snapshot:
    """Operators in a row, each as (replicas, service time)."""
    ops = [
        bare(
            f"o{i}",
            k,
            upstream=(f"o{i - 1}",) if i else (),
            service_time_s=service,
            output_rate=offered,
        )
        for i, (k, service) in enumerate(stations)
    ]
    return snap(*ops, offered=offered)


def test_queueing_gives_the_slowest_operator_of_a_slow_path_one_more() -> None:
    assert wanted("queueing", chain((2, 0.3), (1, 0.8), (1, 0.1))) == {"o0": 2, "o1": 2, "o2": 1}


def test_queueing_takes_one_from_the_quickest_operator_of_a_quick_path() -> None:
    assert wanted("queueing", chain((3, 0.1), (2, 0.2), (1, 0.01))) == {"o0": 2, "o1": 2, "o2": 1}


def test_queueing_leaves_a_path_in_range_alone() -> None:
    assert ask("queueing", chain((3, 0.5), (2, 0.2))).changes == {}


def test_queueing_stops_at_the_maximum_along_a_path() -> None:
    now = snap(bare(k=2, service_time_s=3, max_parallelism=2), offered=1)
    assert reason("queueing", now) == {"map": Reason.AT_MAXIMUM}


def test_an_unknown_operator_is_no_room_to_spare() -> None:
    quick = bare("a", 3, service_time_s=0.01, output_rate=1)
    silent = bare("b", 2, upstream=("a",))
    assert ask("queueing", snap(quick, silent, offered=1)).changes == {}


def test_scale_out_wins_over_scale_in_of_the_same_operator() -> None:
    # a is the slowest of the slow path through b and the only one with spares of the quick one
    a = bare("a", 2, service_time_s=0.2, output_rate=1, sent={"b": 1, "c": 1})
    b = bare("b", 1, upstream=("a",), service_time_s=0.15)
    c = bare("c", 1, upstream=("a",), service_time_s=0.001)
    now = snap(a, b, c, offered=1)
    assert wanted("queueing", now, r_max=0.37, alpha=0.9)["a"] == 3


# ds2


def test_ds2_sizes_a_chain_at_once() -> None:
    a = bare("a", 1, input_rate=50, output_rate=400, busy=1)
    b = bare("b", 1, upstream=("a",), input_rate=100, busy=1)
    assert wanted("ds2", snap(a, b, offered=100)) == {"a": 2, "b": 8}


def test_ds2_does_not_round_on_the_way() -> None:
    s1 = bare("s1", 1, input_rate=200, output_rate=200, busy=1)
    s2 = bare("s2", 1, input_rate=200, output_rate=200, busy=1)
    a = bare("a", 1, upstream=("s1", "s2"), input_rate=40, output_rate=700, busy=1)
    b = bare("b", 1, upstream=("a",), input_rate=99, busy=1)
    assert wanted("ds2", snap(s1, s2, a, b, offered=200)) == {"s1": 1, "s2": 1, "a": 10, "b": 71}


def test_ds2_passes_the_rate_on_through_a_silent_operator() -> None:
    a = bare("a", 2)
    b = bare("b", 1, upstream=("a",), input_rate=10, busy=1)
    now = snap(a, b, at=60, offered=100)
    assert wanted("ds2", now) == {"a": 2, "b": 10}
    then = snap(bare("a", 2, input_rate=10, output_rate=5, busy=1), b, at=30, offered=100)
    assert wanted("ds2", then, now) == {"a": 2, "b": 5}


@pytest.mark.parametrize(
    "measures",
    [
        pytest.param({"busy": 0, "input_rate": 10}, id="busy of zero is no infinite capacity"),
        pytest.param({"busy": 0.5, "input_rate": 0}, id="no input is no capacity of zero"),
        pytest.param({"input_rate": 10}, id="busy unknown"),
    ],
)
def test_ds2_holds_without_evidence(measures: dict) -> None:
    assert reason("ds2", snap(bare(k=7, **measures), offered=100)) == {
        "map": Reason.METRICS_MISSING
    }


# dhalion


@pytest.mark.parametrize(("k", "b", "expected"), [(8, 0.2, 10), (5, 0.6, 13), (2, 0.99, 20)])
def test_dhalion_grows_a_bottleneck_by_its_upstream_s_back_pressure(
    k: int, b: float, expected: int
) -> None:
    source = op("source", 4, backpressured=b)
    slow = op("slow", k, upstream=("source",))
    assert wanted("dhalion", snap(source, slow))["slow"] == expected
    assert reason("dhalion", snap(source, slow))["source"] == Reason.BOTTLENECK_ELSEWHERE


@pytest.mark.parametrize(
    ("growth", "expected"),
    [(100_000, 5), (1000, 3), (1001, 5), (1e9, 40)],
)
def test_dhalion_grows_a_source_by_its_lag(growth: float, expected: int) -> None:
    source = op("source", 4, queue_growth=growth, input_rate=400_000)
    assert wanted("dhalion", snap(source)) == {"source": expected}


def test_dhalion_shrinks_the_healthy() -> None:
    k, seen = 25, []
    for _ in range(3):
        k = wanted("dhalion", snap(op(k=k)))["map"]
        seen.append(k)
    assert seen == [20, 16, 12]


def test_dhalion_leaves_operators_with_lag_alone() -> None:
    source = op("source", 5, queue=10_000)
    inner = op("inner", 5, upstream=("source",), input_buffer=0.21)
    assert reason("dhalion", snap(source, inner)) == {
        "source": Reason.HAS_LAG,
        "inner": Reason.HAS_LAG,
    }


def test_dhalion_shrinks_nothing_while_a_suspect_is_unmeasured() -> None:
    source = op("source", 4, backpressured=0.5)
    silent = bare("silent", 4, upstream=("source",))
    assert ask("dhalion", snap(source, silent)).changes == {}


# hpa-cpu and hpa-varga


@pytest.mark.parametrize(("k", "cpu", "expected"), [(10, 0.701, 11), (5, 0.9, 7), (20, 0.0, 1)])
def test_hpa_cpu(k: int, cpu: float, expected: int) -> None:
    assert wanted("hpa-cpu", snap(bare(k=k, cpu=cpu))) == {"map": expected}


def test_hpa_cpu_takes_the_largest_proposal_of_its_window() -> None:
    proposals = [(0.0, 10), (15.0, 4), (300.0, 4), (300.5, 4)]
    history, seen = [], []
    for at, value in proposals:
        history.append(snap(bare(k=value, cpu=0.7), at=at))
        seen.append(wanted("hpa-cpu", *history)["map"])
    assert seen == [10, 10, 10, 4]


def test_hpa_cpu_tolerates_what_is_close() -> None:
    assert wanted("hpa-cpu", snap(bare(k=10, cpu=0.76)), tolerance=0.1) == {"map": 10}


def test_hpa_cpu_holds_without_any_sample() -> None:
    assert reason("hpa-cpu", snap(bare(k=3))) == {"map": Reason.METRICS_MISSING}


def test_hpa_cpu_keeps_the_window_s_answer_when_a_sample_is_missing() -> None:
    history = [snap(bare(k=5, cpu=0.9), at=0), snap(bare(k=5), at=15)]
    assert wanted("hpa-cpu", *history) == {"map": 7}


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        pytest.param({"idle": 0.1, "queue_growth": 5000, "input_rate": 10_000}, 8, id="lag 1.5"),
        pytest.param({"idle": 0.1}, 7, id="no lag"),
        pytest.param({"idle": 1.0}, 1, id="idle"),
    ],
)
def test_hpa_varga(measures: dict, expected: int) -> None:
    assert wanted("hpa-varga", snap(bare(k=5, backpressured=0, **measures))) == {"map": expected}


def test_hpa_varga_counts_the_lag_of_all_sources_that_reach_a_bottleneck() -> None:
    s1 = op("s1", 5, backpressured=0.3, queue_growth=3000, input_rate=2000)
    s2 = op("s2", 5, backpressured=0.3, queue_growth=1000, input_rate=2000)
    other = op("other", 5, queue_growth=9e9, input_rate=1, backpressured=0.3)
    slow = op("slow", 5, upstream=("s1", "s2"), idle=0.9)
    assert wanted("hpa-varga", snap(s1, s2, other, slow))["slow"] == 10


# psps and dabs


def table_two() -> Snapshot:
    """The parameters of table II (a), for an interval of one second."""
    o1 = bare("o1", 1, queue=0, service_time_s=0.0166, input_rate=140, sent={"o2": 116.62})
    o2 = bare(
        "o2",
        1,
        upstream=("o1",),
        queue=7,
        service_time_s=0.025,
        input_rate=120,
        sent={"o3": 120 * 0.625 / 0.833},
    )
    o3 = bare("o3", 1, upstream=("o2",), queue=20, service_time_s=0.1, input_rate=90)
    return snap(o1, o2, o3, offered=100)


def test_psps_table_two() -> None:
    decision = ask("psps", table_two(), interval_s=1)
    assert {n: t.wanted for n, t in decision.targets.items()} == {"o1": 2, "o2": 3, "o3": 9}
    arrivals = [round(t.numbers["arrivals"], 1) for t in decision.targets.values()]
    assert arrivals == [100.0, 83.3, 62.5]


def test_psps_figure_five() -> None:
    """O1 sends 0.7 to O2 and 0.3 to O3; O2 sends 0.4 of its own to O4, O3 all: theta 0.58."""
    o1 = bare("o1", 1, input_rate=100, sent={"o2": 70, "o3": 30})
    o2 = bare("o2", 1, upstream=("o1",), input_rate=70, sent={"o4": 28})
    o3 = bare("o3", 1, upstream=("o1",), input_rate=30, sent={"o4": 30})
    o4 = bare("o4", 1, upstream=("o2", "o3"), queue=0, service_time_s=1)
    decision = ask("psps", snap(o1, o2, o3, o4, offered=1000), interval_s=1)
    assert decision.targets["o4"].numbers["arrivals"] == pytest.approx(580)


def test_psps_keeps_the_service_time_it_measured_first() -> None:
    policy = POLICIES["psps"]
    params = policy.measure_once(policy.params(), snap(bare(queue=0, service_time_s=0.1)))
    later = snap(bare(queue=0, service_time_s=5.0), offered=100)
    assert policy.decide([later], [], params).changes == {"map": 10}
    assert policy.measure_once(params, later) is params


@pytest.mark.parametrize(("k", "load", "expected"), [(3, 1.07, 4), (10, 0.32, 4), (5, 0.64, 5)])
def test_dabs(k: int, load: float, expected: int) -> None:
    now = snap(bare(k=k, queue=70, service_time_s=0.3), offered=250 / 30)
    target = ask("dabs", now).targets["map"]
    assert target.wanted == expected
    assert target.numbers["load"] == pytest.approx(load, abs=0.005)


def test_dabs_draws_a_line_through_the_last_intervals() -> None:
    history = [
        snap(bare(k=1, queue=0, service_time_s=0.3), at=30.0 * i, offered=rate)
        for i, rate in enumerate([100.0, 1, 2, 3, 4, 5, 6])  # the first is too old to count
    ]
    target = ask("dabs", *history).targets["map"]
    assert target.numbers["predicted"] == pytest.approx(7 * 30)


# decentralized


def test_decentralized_example() -> None:
    params = DecentralizedParams()
    always, never = (lambda: 0.0), (lambda: 0.999)
    assert decide_alone(600, 7, 500, params, is_keeper=False, draw=always) == 1
    assert decide_alone(600, 7, 500, params, is_keeper=False, draw=never) == 0
    assert decide_alone(5000, 1, 500, params, is_keeper=True, draw=never) == 13
    assert decide_alone(100, 4, 500, params, is_keeper=False, draw=always) == -1
    assert decide_alone(100, 4, 500, params, is_keeper=True, draw=always) == 0
    assert ideal(4200, 500, 0.7) == 12


def test_decentralized_is_right_on_average() -> None:
    now = snap(bare(k=7, input_rate=4200, service_time_s=1 / 500))
    answers = [wanted("decentralized", now, seed=seed)["map"] for seed in range(400)]
    assert sum(answers) / len(answers) == pytest.approx(12, abs=0.2)


def test_decentralized_keeps_one() -> None:
    now = snap(bare(k=6, input_rate=0.001, service_time_s=1 / 500))
    assert min(wanted("decentralized", now, seed=seed)["map"] for seed in range(50)) == 1


# static and the rest


def test_static_answers_what_it_was_told() -> None:
    assert wanted("static", snap(bare("a", 3), bare("b", 1)), parallelism="a:5") == {"a": 5, "b": 1}


def test_static_peak_is_sized_once_and_kept() -> None:
    policy = POLICIES["static-peak"]
    a = bare("a", 1, input_rate=10, output_rate=20, service_time_s=0.1)
    b = bare("b", 1, upstream=("a",), input_rate=20, busy=0.5)
    params = policy.measure_once(policy.params.parse({"peak_rate": "100"}), snap(a, b, offered=10))
    later = snap(bare("a", 1, service_time_s=9), bare("b", 1, upstream=("a",)), offered=1)
    assert policy.decide([later], [], params).changes == {"a": 10, "b": 5}


def test_static_peak_needs_a_peak() -> None:
    assert reason("static-peak", snap(op(), offered=9)) == {"map": Reason.METRICS_MISSING}


@pytest.mark.parametrize(
    ("k", "busy", "expected"), [(4, 0.9, 5), (4, 0.89, 4), (4, 0.3, 3), (1, 0.1, 1)]
)
def test_streaming_dra(k: int, busy: float, expected: int) -> None:
    assert wanted("streaming-dra", snap(bare(k=k, busy=busy))) == {"map": expected}


def test_streaming_dra_acts_once_a_minute() -> None:
    history = [snap(bare(k=4, busy=0.95), at=at) for at in (60.0, 90.0)]
    before = ask("streaming-dra", history[0])
    assert ask("streaming-dra", *history, applied=[before]).changes == {}
    later = snap(bare(k=5, busy=0.95), at=120.0)
    assert ask("streaming-dra", *history, later, applied=[before]).changes == {"map": 6}
