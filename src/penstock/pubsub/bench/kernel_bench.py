"""Measures matching: the bare kernel, the whole function of operator M, and what limits them."""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from penstock.core.progress import WorkProgress
from penstock.pubsub.bench.arithmetic_limit import make_chain_call, make_product_call
from penstock.pubsub.bench.load import BenchLoad, BenchSpec, make_load
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.half_spaces import vector_size

#: E-StreamHub, figure 6: 422 publications/s for 100,000 encrypted subscriptions on 12 hosts.
PAPER_OPERATIONS_PER_S, PAPER_CORES = 42.2e6, 96
#: Publications that are compared with brute force.
_CHECKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Operations in the best round: by the clock with all threads, and per second of CPU time."""

    per_s: float
    per_cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """Figures of one benchmark; an operation is one publication against one subscription."""

    kernel: Rate
    operator: Rate
    #: Floating-point operations in single precision that the machine can do; None if plain.
    arithmetic: Rate | None
    #: Matches among all pairs.
    match_rate: float
    #: Pairs compared with brute force, and how many of them were wrong.
    checked_pairs: int
    wrong_pairs: int
    index_bytes: int
    build_s: float
    first_call_cpu_s: float
    load_average: float

    @property
    def operator_share(self) -> float:
        """What the operator reaches of its kernel, by CPU time."""
        return self.operator.per_cpu_s / self.kernel.per_cpu_s


def run_bench(spec: BenchSpec, report: Callable[[WorkProgress], None]) -> BenchResult:
    """Make the load, compile, measure and check; reports progress."""
    total = 2 * spec.rounds + 1
    progress = _Progress(total, report)
    began_s = time.perf_counter()
    load = make_load(spec)
    build_s = time.perf_counter() - began_s
    first_call_cpu_s = _measure_cpu(load.slices[0].run_kernel)
    arithmetic = measure_arithmetic(spec) if spec.is_encrypted else None
    progress.advance()
    pairs = spec.subscriptions * spec.publications
    kernels = [part.run_kernel for part in load.slices]
    operators = [_operator_call(load, i) for i in range(spec.slices)]
    wrong, matches = _check(load)
    return BenchResult(
        kernel=measure_calls(kernels, pairs, spec, progress.advance),
        operator=measure_calls(operators, pairs, spec, progress.advance),
        arithmetic=arithmetic,
        match_rate=matches / pairs,
        checked_pairs=min(_CHECKED, spec.publications) * spec.subscriptions,
        wrong_pairs=wrong,
        index_bytes=sum(part.index_bytes for part in load.slices),
        build_s=build_s,
        first_call_cpu_s=first_call_cpu_s,
        load_average=os.getloadavg()[0],
    )


def measure_calls(
    calls: Sequence[Callable[[], object]],
    operations: int,
    spec: BenchSpec,
    advance: Callable[[], None],
) -> Rate:
    """Run all calls with threads, several times, and return the best rates."""
    walls_s, cpus_s = [], []
    with ThreadPoolExecutor(spec.threads) as pool:
        for _ in range(spec.rounds):
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            deque(pool.map(_run, calls), maxlen=0)
            walls_s.append(time.perf_counter() - began_s)
            # of all threads, those of the matrix library, too
            cpus_s.append(time.process_time() - began_cpu_s)
            advance()
    return Rate(per_s=operations / min(walls_s), per_cpu_s=operations / min(cpus_s))


def measure_arithmetic(spec: BenchSpec) -> Rate:
    """Return floating-point operations: of multiply-adds in registers, or of a matrix product.

    The matrix library has threads of its own, and may use shorter vectors than compiled kernels.
    """
    is_compiled = spec.backend is Backend.NUMBA
    call, operations = make_chain_call() if is_compiled else make_product_call()
    calls = [call] * (2 * spec.threads if is_compiled else 1)
    return measure_calls(calls, operations * len(calls), spec, lambda: None)


def count_flops(attributes: int) -> int:
    """Return the floating-point operations of a pair: two for each component of each test.

    >>> count_flops(4), count_flops(8)
    (128, 384)
    """
    return 2 * vector_size(attributes) * 2 * attributes


class _Progress:
    """Counts parts of the work."""

    def __init__(self, total: int, report: Callable[[WorkProgress], None]) -> None:
        self._total, self._done, self._report = total, 0, report

    def advance(self) -> None:
        self._done += 1
        self._report(WorkProgress(total=self._total, kept=0, done=self._done))


def _operator_call(load: BenchLoad, place: int) -> Callable[[], object]:
    """Return the call of operator M for a batch that changes no subscription."""
    matcher = load.slices[place].matcher
    return lambda: load.operator.list_matches(matcher, load.rows, first=0, slice=place)


def _measure_cpu(call: Callable[[], object]) -> float:
    began_s = time.process_time()
    call()
    return time.process_time() - began_s


def _run(call: Callable[[], object]) -> None:
    """Call and drop the result, as soon as it is there."""
    call()


def _check(load: BenchLoad) -> tuple[int, int]:
    """Return wrong pairs of the first publications, and the number of all matches."""
    lists = [part.matcher.match(load.publications) for part in load.slices]
    wrong = 0
    for p, cells in enumerate(load.cells[:_CHECKED]):
        is_inside = (load.ranges[:, :, 0] <= cells) & (cells <= load.ranges[:, :, 1])
        expected = set(np.nonzero(is_inside.all(axis=1))[0].tolist())
        numbers = [number for part in lists for number in part[p].as_py()]
        wrong += len(expected ^ set(numbers)) + len(numbers) - len(set(numbers))
    return wrong, sum(len(part.values) for part in lists)
