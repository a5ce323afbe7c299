"""Every workload by name, alone and put together."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workloads.registry import PATTERNS, make_workload
from penstock.workloads.workload import Workload

THESIS = ["cosine", "random", "increase", "decrease", "convergence", "testrun", "spikes"]


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("traces") / "load.csv"
    file.write_text("time_s,rate\n0,3\n60,5\n120,4\n")
    return file


def make(name: str, minutes: int, seed: int, file: Path) -> Workload:
    needed = {"file": str(file), "repeat": "true"} if name == "trace" else {}
    return make_workload(name, minutes, seed, needed)


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=3, deadline=None)
@given(minutes=st.integers(1, 300), seed=st.integers(-(2**50), 2**50))
def test_every_workload_has_the_length_asked_for_and_is_never_negative(
    name: str, minutes: int, seed: int, trace_file: Path
) -> None:
    load = make(name, minutes, seed, trace_file)
    assert load.duration_s == minutes * 60
    assert len(load.mean_rates()) == minutes
    assert min(load.starts + load.ends) >= 0
    assert load == make(name, minutes, seed, trace_file)


@pytest.mark.parametrize("name", THESIS)
def test_the_thesis_patterns_are_whole_numbers(name: str) -> None:
    rates = make_workload(name, 140).mean_rates()
    assert np.array_equal(rates, np.trunc(rates))


@pytest.mark.parametrize("name", [n for n in PATTERNS if n != "trace"])
def test_only_seeded_workloads_change_with_the_seed(name: str) -> None:
    noise = {"noise": "9"} if name == "convergence" else {}
    same = make_workload(name, 60, 1, noise) == make_workload(name, 60, 2, noise)
    assert same is not PATTERNS[name].seeded


@pytest.mark.parametrize("name", [n for n in PATTERNS if n != "trace"])
def test_without_minutes_a_workload_has_its_own_length(name: str) -> None:
    expected = {"convergence": 90, "testrun-scaleup": 10, "testrun-scaledown": 10}
    assert make_workload(name).duration_s == 60 * expected.get(name, 140)


def test_names_know_what_they_are_called_and_say_where_they_come_from() -> None:
    for name, pattern in PATTERNS.items():
        assert pattern.name == name
        assert pattern.summary and pattern.source


def test_text_means_what_the_operators_mean() -> None:
    a, b = make_workload("cosine", 30), make_workload("random", 30)
    assert make_workload("cosine + random", 30) == a + b
    assert make_workload("cosine * 0.5", 30) == a * 0.5 == make_workload("0.5 * cosine", 30)
    assert make_workload("cosine then random", 60) == a.then(b)
    assert make_workload("cosine for 30 then random for 30") == a.then(b)


def test_a_seed_in_parentheses_is_for_that_part_only() -> None:
    both = make_workload("random + random(seed=7)", 30, 5)
    assert both == make_workload("random", 30, 5) + make_workload("random", 30, 7)


def test_parts_that_do_not_say_how_long_share_what_is_left() -> None:
    load = make_workload("constant(rate=1) then constant(rate=2) for 4 then constant(rate=3)", 11)
    assert load.mean_rates().tolist() == [1] * 3 + [2] * 4 + [3] * 4


def test_parentheses_in_a_sequence_make_no_difference() -> None:
    a = make_workload("(constant then ramp) then market", 90)
    b = make_workload("constant then (ramp then market)", 90)
    assert a == b == make_workload("constant then ramp then market", 90)


def test_a_short_part_of_a_sum_is_over_when_it_is_over() -> None:
    load = make_workload("constant(rate=1) + constant(rate=2) for 2", 4)
    assert load.mean_rates().tolist() == [3, 3, 1, 1]


def test_sequences_that_say_everything_are_as_long_as_they_say() -> None:
    assert make_workload("constant for 3 then ramp for 4 min").duration_s == 420
    assert make_workload("cosine + convergence").duration_s == 140 * 60


@pytest.mark.parametrize(
    ("text", "given_params", "message"),
    [
        ("cosin", {}, "unknown workload 'cosin'\nhint: did you mean 'cosine'?"),
        ("cosine", {"nois": 1}, "cosine.nois: unknown parameter\nhint: did you mean 'noise'?"),
        ("dns", {"spike_upp": 1}, "dns.spike_upp: unknown parameter\nhint: did you mean 'spike_up"),
        ("cosine", {"mean": "many"}, "cosine.mean: must be a whole number, got 'many'"),
        ("cosine", {"period": 0}, "cosine.period: must be above 0, got 0"),
        ("cosine + ramp", {"mean": 1}, "mean: there is more than one workload in 'cosine + ramp'"),
        ("cosine", {"seed": 1}, "seed: is not a parameter"),
        ("random(seed=x)", {}, "random.seed: must be a whole number, got 'x'"),
        ("random", {"start": 5, "max": 4}, "random.start: must be at most max (4), got 5"),
        ("brownian", {"start": 5, "max": 4}, "brownian.start: must be at most max (4), got 5"),
        ("trapezoid", {"rise": 0.9}, "trapezoid.rise: rise + fall must be at most 1, got 1.3"),
        ("steps", {"rates": "1/x"}, "steps.rates: must be a list of rates, got '1/x'"),
        ("testrun", {"first": -1, "second": -1, "third": -1}, "testrun.first: one level must be"),
        ("ramp for 200", {}, "'ramp for 200' does not fit into 140 minutes"),
        ("ramp for 140 then cosine", {}, "needs 141 minutes at least, got 140"),
        ("trace", {}, "trace.file: is missing"),
    ],
)
def test_mistakes_are_answered_with_field_value_and_a_way_out(
    text: str, given_params: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        make_workload(text, 140, given=given_params)
    assert message in str(caught.value)


@pytest.mark.parametrize("minutes", [0, -3, 10_000_000])
def test_impossible_lengths_are_refused(minutes: int) -> None:
    with pytest.raises(InputError, match="minutes: must be from 1/60"):
        make_workload("cosine", minutes)


def test_a_part_of_a_minute_is_its_first_seconds() -> None:
    whole, part = make_workload("cosine", 3), make_workload("cosine", 2.5)
    assert part.duration_s == 150
    assert part.total_records == whole.count(0, 150)
    assert make_workload("constant(rate=10)", 0.5).total_records == 300
