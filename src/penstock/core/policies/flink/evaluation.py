"""Demand and capacity of each operator by the metric window, and the effect of earlier changes.

An applied target keeps, among its numbers, the `capacity` of the operator before the change and
the capacity `expected` after it (records/s of all its replicas).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.numbers import ceil
from penstock.core.policies.flink.metric_window import Array, Measures, MetricWindows
from penstock.core.policy import Applied, History
from penstock.core.snapshot import OperatorSnapshot
from penstock.core.topology import Topology

#: A source that has this many seconds of records waiting shows what it can really read.
OBSERVED_LAG_S = 30.0


@dataclass(frozen=True, slots=True)
class OperatorEvaluation:
    """One operator at every instant of the history. Rates are records/s of the whole operator."""

    #: Expected input rate, and the rate that working off the lag adds to it.
    target: Array
    catch_up: Array
    #: What it could take if it were never idle (true processing rate); infinite while idle.
    capacity: Array
    #: Seconds of records that wait at a source; 0 elsewhere.
    lag_s: Array


def evaluate(
    history: History, windows: MetricWindows, *, catch_up_s: float, observed_switch: float
) -> dict[str, OperatorEvaluation]:
    """Evaluate every operator, from the sources down."""
    graph, ops = history[-1].topology, history[-1].operators
    measures = Measures(history, windows)
    evaluations: dict[str, OperatorEvaluation] = {}
    for name in graph.order:
        lag_s = target = catch_up = np.zeros(len(history))
        inputs = measures.mean(name, "input_rate")
        capacity = _by_busy_time(inputs, measures.mean(name, "busy"))
        if ops[name].is_source:
            # lag that is not reported counts as none
            lag, growth = measures.known(name, "queue"), measures.known(name, "queue_growth")
            target = np.maximum(0.0, inputs + windows.slope(lag, growth))
            catch_up = lag / catch_up_s if catch_up_s else catch_up
            lag_s = _ratio(lag, inputs)
            capacity = _as_observed(name, measures, windows, capacity, observed_switch)
        for up in ops[name].upstream:
            share = _ratio(_edge(up, name, graph, measures), measures.mean(up, "input_rate"))
            target = target + evaluations[up].target * share
            catch_up = catch_up + evaluations[up].catch_up * share
        evaluations[name] = OperatorEvaluation(target, catch_up, capacity, lag_s)
    return evaluations


def _edge(up: str, name: str, graph: Topology, measures: Measures) -> Array:
    """Return records/s on one edge, derived from the totals of operators."""
    others = [other for other in graph.upstream[name] if other != up]
    if not others:
        return measures.mean(name, "input_rate")
    if all(len(graph.downstream[other]) == 1 for other in others):
        elsewhere = np.sum([measures.mean(other, "output_rate") for other in others], axis=0)
        return np.asarray(measures.mean(name, "input_rate") - elsewhere)
    return measures.mean(up, "output_rate")


def _by_busy_time(inputs: Array, busy: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(inputs == 0, np.inf, np.where(busy > 0, inputs / busy, np.nan))


def _as_observed(
    name: str, measures: Measures, windows: MetricWindows, by_busy: Array, observed_switch: float
) -> Array:
    """Return the rate of a source while its lag was long, if it is below the rate by busy time."""
    rate = measures[name, "input_rate"]
    blocked, lag = measures.known(name, "backpressured"), measures.known(name, "queue")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        saturated = (lag >= OBSERVED_LAG_S * rate) & (rate > 0) & (blocked < 1)
        observed = windows.mean(np.where(saturated, rate / (1 - blocked), np.nan))
    trusted = (windows.sum(saturated) >= 2) & (
        ~np.isfinite(by_busy) | (by_busy > (1 + observed_switch) * observed)
    )
    return np.where(trusted, observed, by_busy)


def _ratio(above: Array, below: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where((above > 0) & (below > 0), above / below, 0.0)


def was_ineffective(
    op: OperatorSnapshot, capacity: float, applied: Applied, *, least: float
) -> bool:
    """Return whether the last increase brought less than this share of the expected capacity."""
    last = applied[-1].targets.get(op.name) if applied else None
    if last is None or last.wanted <= last.current or last.wanted != op.parallelism:
        return False
    before, expected = last.numbers.get("capacity"), last.numbers.get("expected")
    if before is None or expected is None or expected <= before:
        return False
    return bool((capacity - before) / (expected - before) < least)


def speed_up(name: str, applied: Applied, lowest: float) -> float:
    """Return the share of linear speed-up of an operator, 1 with fewer than three changes."""
    past = [decision.targets[name] for decision in applied if name in decision.targets]
    samples = [(t.current, float(t.numbers["capacity"])) for t in past if t.numbers.get("capacity")]
    return scalability(samples, lowest) if len(samples) >= 3 else 1.0


def scalability(samples: Sequence[tuple[int, float]], lowest: float) -> float:
    """Return how much of linear speed-up was reached, from pairs of (parallelism, capacity).

    Least squares of capacity = alpha x beta x parallelism, where beta is the capacity of
    one replica at the smallest parallelism; between `lowest` and 1, rounded up to
    two decimals.

    >>> scalability([(4, 4000), (8, 7000), (16, 12000)], 0.5)
    0.79
    """
    smallest = min(p for p, _ in samples)
    beta = next(capacity for p, capacity in reversed(samples) if p == smallest) / smallest
    alpha = sum(p * r for p, r in samples) / (beta * sum(p * p for p, _ in samples))
    return ceil(min(1.0, max(lowest, alpha)) * 100) / 100
