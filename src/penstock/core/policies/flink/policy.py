"""Flink: the autoscaler of the Flink Kubernetes operator, the baseline that practitioners run.

Its source at commit 6e9caeb (July 2026), FLIP-271; DS2 at heart, with a catch-up time, a
restart time and a utilisation band. Its known flaws are kept, because it is a baseline:
lag that is not reported counts as none, and needed capacity is rounded to whole records/s.
"""

from dataclasses import dataclass

import numpy as np

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import NOISE
from penstock.core.params import NOTHING, Params, PerOperator, look_up, param
from penstock.core.policies.flink.evaluation import (
    OperatorEvaluation,
    evaluate,
    speed_up,
    was_ineffective,
)
from penstock.core.policies.flink.metric_window import Array, MetricWindows
from penstock.core.policy import Applied, History, Policy, PolicyStyle
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.errors import InputError

SIZE = (
    "needed = lag / catch-up + target x restart / catch-up + target / {aim} = {needed} records/s "
    "for target {target}; capacity now {capacity}; wanted = ceil({k} x {scale}) = {wanted}; "
    "band {up} to {down}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkParams(Params):
    """Parameters of the Flink autoscaler, with the operator's defaults."""

    window_s: float = param(900.0, "metric window", unit="s", low=0)
    stabilization_s: float = param(300.0, "silence after every change", unit="s", low=0)
    target: float = param(0.7, "utilisation to aim for", low=0, above=True, high=1)
    boundary: float = param(0.3, "half width of the utilisation band", low=0, high=1)
    catch_up_s: float = param(1800.0, "time to work off a lag; 0: ignore lag", unit="s", low=0)
    restart_s: float = param(300.0, "expected time of a change", unit="s", low=0)
    scale_down_interval_s: float = param(3600.0, "delay of decreases", unit="s", low=0)
    scale_down_max: float = param(0.6, "largest decrease of one action", low=0, high=1)
    scale_up_max: float = param(100_000.0, "largest increase of one action", low=0)
    max_parallelism: int = param(200, "upper bound of any operator", unit="replicas", low=1)
    backlog_s: float = param(300.0, "lag above which nothing shrinks", unit="s", low=0)
    observed_switch: float = param(0.15, "trust observed capacity beyond this gap", low=0)
    partitions: PerOperator = param(NOTHING, "partitions (or key groups) to align with", low=0)
    alignment: str = param("balanced", "how", choices=("balanced", "evenly-spread", "off"))
    effectiveness: bool = param(False, "block increases after one that did not help")
    effectiveness_min: float = param(0.1, "share of the expected gain that counts", low=0, high=1)
    scalability: bool = param(False, "correct for less than linear speed-up seen before")
    scalability_min: float = param(0.5, "lowest speed-up to assume", low=0.01, high=1)

    def check(self) -> None:
        """The band must stay within 0 to 1."""
        if self.target + self.boundary > 1 + 1e-9:
            raise InputError(
                "boundary", f"target + boundary must be at most 1, got {self.boundary}"
            )


def flink(history: History, applied: Applied, params: FlinkParams) -> Decision:
    """Size all operators once one of them is outside its band, for demand, lag and restart.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="map", parallelism=4, input_rate=1000, output_rate=1000,
    ...     busy=0.9, queue=60_000, queue_growth=200)
    >>> now = Snapshot(at=0, offered={"map": 1200}, operators={"map": op})
    >>> flink([now], [], FlinkParams(window_s=0, stabilization_s=0)).changes
    {'map': 8}
    """
    history = _since_last_change(history, applied)
    now = history[-1]
    began = applied[-1].at if applied else history[0].at
    windows = MetricWindows.of(history, params.window_s, began + params.stabilization_s)
    evaluations = evaluate(
        history, windows, catch_up_s=params.catch_up_s, observed_switch=params.observed_switch
    )
    backlog = any(e.lag_s[-1] > params.backlog_s for e in evaluations.values())
    answers = {}
    for name, op in now.operators.items():
        known = not np.isnan(evaluations[name].capacity[-1] + evaluations[name].target[-1])
        if op.input_rate is None or op.busy is None or not known:
            answers[name] = keep(op.parallelism, Reason.METRICS_MISSING), False
        elif windows.full_from >= len(history):
            answers[name] = keep(op.parallelism, Reason.WINDOW_NOT_FULL), False
        else:
            answers[name] = _answer(
                op, evaluations[name], windows, applied, params, backlog=backlog
            )
    acts = any(outside for target, outside in answers.values() if target.wanted != target.current)
    targets = {name: target if acts else _held(target) for name, (target, _) in answers.items()}
    return Decision(now.at, "flink", FrozenDict(targets))


def _since_last_change(history: History, applied: Applied) -> History:
    """Drop the snapshots from before the last change of the pipeline, whatever its cause."""
    current = _parallelism(history[-1])
    changed_at = applied[-1].at if applied else -np.inf
    start = len(history) - 1
    while start > 0:
        past = history[start - 1]
        if past.at <= changed_at or _parallelism(past) != current:
            break
        start -= 1
    return history[start:]


def _parallelism(snapshot: Snapshot) -> dict[str, int]:
    return {name: op.parallelism for name, op in snapshot.operators.items()}


def _needed(
    evaluation: OperatorEvaluation, utilisation: float, params: FlinkParams, *, restart: bool
) -> Array:
    """round(catch-up + [target x restart / catch-up time] + target / utilisation), as they do."""
    if utilisation <= 0:
        return np.full(len(evaluation.target), np.inf)
    extra = params.restart_s / params.catch_up_s if restart and params.catch_up_s else 0.0
    demand = (
        evaluation.catch_up + evaluation.target * extra + evaluation.target / min(1.0, utilisation)
    )
    return np.floor(demand + 0.5)


def _answer(
    op: OperatorSnapshot,
    evaluation: OperatorEvaluation,
    windows: MetricWindows,
    applied: Applied,
    params: FlinkParams,
    *,
    backlog: bool,
) -> tuple[Target, bool]:
    """Return the target of an operator, and whether it is outside its utilisation band."""
    k, needed = op.parallelism, _needed(evaluation, params.target, params, restart=True)
    high = 1.0 if backlog else params.target + params.boundary
    low = 0.0 if backlog else params.target - params.boundary
    up = _needed(evaluation, high, params, restart=False)
    down = _needed(evaluation, low, params, restart=True)
    alpha = speed_up(op.name, applied, params.scalability_min) if params.scalability else 1.0
    with np.errstate(invalid="ignore"):
        scale = needed / evaluation.capacity / alpha
    scale = np.where(np.isnan(scale), 1.0, scale)
    scale = np.clip(scale, 1 - params.scale_down_max, 1 + params.scale_up_max)
    recommended = _recommended(op, scale[windows.full_from :], params)
    outside = ((evaluation.capacity < up) | (evaluation.capacity > down))[windows.full_from :]
    wanted = recommended[-1]
    numbers = {
        "aim": params.target,
        "needed": needed[-1],
        "target": evaluation.target[-1],
        "capacity": evaluation.capacity[-1],
        "k": k,
        "scale": scale[-1],
        "wanted": wanted,
        "up": up[-1],
        "down": down[-1],
        "expected": evaluation.capacity[-1] / k * wanted,
    }
    numbers = {name: float(value) for name, value in numbers.items()}
    if wanted == k:
        return Target(k, k, Reason.FITS, SIZE, numbers), False
    if wanted > k:
        if params.effectiveness and was_ineffective(
            op, evaluation.capacity[-1], applied, least=params.effectiveness_min
        ):
            return keep(k, Reason.INEFFECTIVE, SIZE, **numbers), False
        return Target(k, wanted, Reason.RATE_ABOVE_CAPACITY, SIZE, numbers), bool(outside[-1])
    place = _delayed(recommended, k, windows, params.scale_down_interval_s)
    if place is None:
        return keep(k, Reason.SCALE_DOWN_DELAYED, SIZE, **numbers), False
    numbers["wanted"] = wanted = recommended[place]
    return Target(k, wanted, Reason.RATE_BELOW_CAPACITY, SIZE, numbers), bool(outside[place])


def _recommended(op: OperatorSnapshot, scale: Array, params: FlinkParams) -> list[int]:
    """Return whole replicas for each factor; each distinct number is bounded once."""
    wanted, places = np.unique(np.ceil(op.parallelism * scale - NOISE), return_inverse=True)
    bounded = [_bounded(op, int(number), params) for number in wanted]
    return [bounded[place] for place in places.tolist()]


def _bounded(op: OperatorSnapshot, wanted: int, params: FlinkParams) -> int:
    highest = max(op.parallelism, params.max_parallelism)
    if op.max_parallelism is not None:
        highest = min(highest, op.max_parallelism)
    wanted = max(1, min(wanted, highest))
    partitions = int(look_up(params.partitions, op.name) or 0)
    if wanted == op.parallelism or not partitions:
        return wanted
    return align(wanted, op.parallelism, partitions, highest, params.alignment)


def align(wanted: int, current: int, partitions: int, highest: int, mode: str) -> int:
    """Return the parallelism at or above `wanted` that spreads partitions well.

    `evenly-spread` takes a divisor of the number of partitions, `balanced` also one that
    leaves fewer partitions to a replica; `off`, or none found, leaves `wanted` alone.

    >>> align(8, 4, 12, 200, "balanced"), align(8, 4, 128, 200, "balanced")
    (12, 8)
    >>> align(4, 10, 7, 200, "balanced")
    7
    """
    if mode == "off" or partitions < 1:
        return wanted
    limit = min(partitions, highest)
    if wanted < current:
        limit = min(current, limit)
    for candidate in range(wanted, limit + 1):
        if partitions % candidate == 0:
            return candidate
        if mode == "balanced" and partitions // candidate < partitions // wanted:
            return candidate
    return wanted


def _delayed(
    recommended: list[int], k: int, windows: MetricWindows, interval_s: float
) -> int | None:
    """Return the index of the largest uninterrupted decrease; None before the interval is over."""
    at, first = windows.at[windows.full_from :], len(recommended) - 1
    while first > 0 and recommended[first - 1] < k:
        first -= 1
    if at[-1] - at[first] < interval_s:
        return None
    within = [i for i in range(first, len(recommended)) if at[i] >= at[-1] - interval_s]
    return max(within, key=lambda i: (recommended[i], i))


def _held(target: Target) -> Target:
    """Return the target without its change, for a tick with no operator outside its band."""
    if target.wanted == target.current:
        return target
    return keep(target.current, Reason.INSIDE_BAND, target.formula, **target.numbers)


POLICY = Policy(
    name="flink",
    summary="the autoscaler of the Flink Kubernetes operator",
    paper="Apache Flink Kubernetes operator, 2026",
    decide=flink,
    params=FlinkParams,
    measures=("input_rate", "output_rate", "busy", "queue", "queue_growth", "backpressured"),
    lookback_s=lambda p: float(p.window_s + p.stabilization_s + p.scale_down_interval_s),
    style=PolicyStyle("#56B4E9", "solid", "v"),
)
