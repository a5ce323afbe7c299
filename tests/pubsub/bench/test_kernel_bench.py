"""The benchmark measures what it says, and finds wrong answers."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.core.progress import WorkProgress
from penstock.errors import InputError
from penstock.pubsub.bench import kernel_bench
from penstock.pubsub.bench.kernel_bench import run_bench
from penstock.pubsub.bench.load import BenchLoad, BenchSpec, make_load
from penstock.pubsub.kernels.backend import Backend

SPEC = BenchSpec(
    subscriptions=3000,
    attributes=2,
    match_rate=0.05,
    is_encrypted=True,
    publications=60,
    slices=3,
    threads=2,
    rounds=2,
    seed=1,
    backend=Backend.NUMPY,
)


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_small_benchmark_is_right_and_has_the_match_rate(is_encrypted: bool) -> None:
    seen: list[WorkProgress] = []
    result = run_bench(replace(SPEC, is_encrypted=is_encrypted), seen.append)
    assert (result.wrong_pairs, result.checked_pairs) == (0, 8 * 3000)
    assert result.match_rate == pytest.approx(SPEC.match_rate, rel=0.3)
    assert min(result.kernel.per_cpu_s, result.operator.per_cpu_s, result.kernel.per_s) > 0
    assert (result.arithmetic is not None) is is_encrypted
    assert (seen[-1].done, seen[-1].total) == (5, 5)


def test_a_wrong_answer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_broken_load(spec: BenchSpec) -> BenchLoad:
        load = make_load(spec)
        return replace(load, ranges=load.ranges + np.array([0, 3000]))

    monkeypatch.setattr(kernel_bench, "make_load", make_broken_load)
    assert run_bench(replace(SPEC, rounds=1, is_encrypted=False), lambda _: None).wrong_pairs > 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"threads": 0}, "--threads: must be at least 1"),
        ({"match_rate": 0.0}, "--match-rate: must be above 0"),
        ({"match_rate": float("nan")}, "--match-rate: must be above 0"),
        ({"attributes": 33}, "--attributes: must be at most 32"),
        ({"slices": 3001}, "--slices: must be at most --subscriptions"),
        ({"seed": -1}, "--seed: must be at least 0"),
    ],
)
def test_impossible_benchmarks_are_refused(change: dict[str, float], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(SPEC, **change)
    assert problem in str(caught.value)
