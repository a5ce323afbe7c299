"""Figures of a simulation: accuracy, throughput, records, actions and traffic."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from penstock.core.instance_decision import ideal
from penstock.decentralized.simulator.timeline import (
    OperatorSeries,
    ScalingAction,
    ScalingTimeline,
)
from penstock.decentralized.simulator.traffic import (
    find_duplication_phases,
    fit_power,
    list_traffic_points,
)
from penstock.runs.scores import percentile

#: An operator has settled while its accuracy is this close to 1.
SETTLED = 0.15
#: The longest delay between load and nodes that is looked for.
MAX_LAG = 30


def accuracy_series(timeline: ScalingTimeline, series: OperatorSeries) -> list[float]:
    """Return instances / ideal of each step, with ideal = ceil(load / (r x capacity))."""
    setup = timeline.setup
    return [
        instances / ideal(load, setup.capacity, setup.r)
        for instances, load in zip(series.instances, series.load, strict=True)
    ]


def throughput_series(timeline: ScalingTimeline, series: OperatorSeries) -> list[float]:
    """Return the share of each step's load that the capacity of all instances covers."""
    capacity = timeline.setup.capacity
    return [
        min(1.0, instances * capacity / load) if load else 1.0
        for instances, load in zip(series.instances, series.load, strict=True)
    ]


def summarize(timeline: ScalingTimeline) -> dict[str, Any]:
    """Return the figures of a whole simulation; None for an undefined figure."""
    accuracies = [accuracy_series(timeline, series) for series in timeline.operators]
    throughputs = [throughput_series(timeline, series) for series in timeline.operators]
    total = timeline.total
    return {
        "accuracy": _spread([value for series in accuracies for value in series]),
        "ideal_throughput": float(np.mean(throughputs)),
        "records": asdict(timeline.records) | {"waiting": timeline.records.waiting},
        "nodes": {
            "min_of_an_operator": min(min(each.instances) for each in timeline.operators),
            "max": max(total.instances),
            "follow": correlate(total.load, total.instances),
            "follow_local": _mean(
                [correlate(each.load, each.instances) for each in timeline.operators]
            ),
            "lag_steps": find_lag(total.load, total.instances),
        },
        "shortage": _describe_shortage(accuracies, throughputs),
        "actions": _count_actions(timeline.actions),
        "traffic": _describe_traffic(timeline),
        "settling": _describe_settling(timeline),
    }


def correlate(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if a series is constant."""
    a, b = np.array(first, float), np.array(second, float)
    if len(a) < 2 or not a.std() or not b.std():
        return None
    return float(np.corrcoef(a, b)[0, 1])


def find_lag(cause: Sequence[float], effect: Sequence[float]) -> int | None:
    """Return by how many steps the effect follows its cause: the lag of the best correlation.

    >>> find_lag([0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0])
    2
    """
    lags = range(min(MAX_LAG, len(cause) - 2) + 1)
    values = [correlate(cause[: len(cause) - lag], effect[lag:]) for lag in lags]
    known = [(value, -lag) for lag, value in enumerate(values) if value is not None]
    return -max(known)[1] if known else None


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "mean": float(np.mean(values)),
        "p05": percentile(values, 5),
        "p95": percentile(values, 95),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _describe_shortage(
    accuracies: Sequence[Sequence[float]], throughputs: Sequence[Sequence[float]]
) -> dict[str, float | None]:
    """Return how often steps with too few instances lack capacity, and the worst of the others."""
    pairs = [
        pair
        for operator in zip(accuracies, throughputs, strict=True)
        for pair in zip(*operator, strict=True)
    ]
    short = [throughput for accuracy, throughput in pairs if accuracy < 1]
    enough = [throughput for accuracy, throughput in pairs if accuracy >= 1]
    return {
        "share_of_steps": len(short) / len(pairs),
        "share_below_load": sum(value < 1 for value in short) / len(short) if short else None,
        "worst_throughput": min(short, default=None),
        "worst_throughput_otherwise": min(enough, default=None),
    }


def _count_actions(actions: Sequence[ScalingAction]) -> dict[str, float | None]:
    return {
        "duplications": sum(action.copies > 0 for action in actions),
        "copies": sum(action.copies for action in actions),
        "deletions": sum(action.copies == 0 for action in actions),
        "unfinished": sum(action.end_step is None for action in actions),
        "duplication_steps": _mean(list(_durations(actions, is_duplication=True))),
        "deletion_steps": _mean(list(_durations(actions, is_duplication=False))),
    }


def _durations(actions: Sequence[ScalingAction], *, is_duplication: bool) -> Iterator[int]:
    for action in actions:
        if action.end_step is not None and (action.copies > 0) is is_duplication:
            yield action.end_step - action.step + 1


def _describe_traffic(timeline: ScalingTimeline) -> dict[str, float | None]:
    phases = list(find_duplication_phases(timeline))
    fit = fit_power(list_traffic_points(timeline))
    total = timeline.total
    return {
        "messages": sum(total.messages),
        "per_step": float(np.mean(total.messages)),
        "max": max(total.messages),
        "formula_phases": len(phases),
        "formula_mismatches": sum(phase.messages != phase.predicted for phase in phases),
        "exponent": fit.exponent if fit else None,
        "fit_r2": fit.r2 if fit else None,
        "deletion_mismatches": sum(
            action.messages != 2 * action.neighbours
            for action in timeline.actions
            if action.end_step is not None and not action.copies
        ),
        "with_changes": _correlate_changes(timeline),
    }


def _correlate_changes(timeline: ScalingTimeline) -> float | None:
    """Return how the messages of a step's actions follow the number of instances they change."""
    changes, messages = ([0] * timeline.setup.steps for _ in range(2))
    for action in timeline.actions:
        changes[action.step] += max(1, action.copies)
        messages[action.step] += action.messages
    return correlate(changes, messages)


def _describe_settling(timeline: ScalingTimeline) -> dict[str, float | None]:
    """Return how the pipeline follows a jump in the middle: steps, and the extreme accuracy."""
    if timeline.setup.load != "jump":
        return {"steps": None, "overshoot": None}
    setup = timeline.setup
    ideals = [
        sum(ideal(load, setup.capacity, setup.r) for load in loads)
        for loads in zip(*(each.load for each in timeline.operators), strict=True)
    ]
    pairs = zip(timeline.total.instances, ideals, strict=True)
    after = [instances / wanted for instances, wanted in pairs][setup.steps // 2 :]
    away = [step for step, value in enumerate(after) if abs(value - 1) > SETTLED]
    return {"steps": float(away[-1] + 1 if away else 0), "overshoot": max(after)}
