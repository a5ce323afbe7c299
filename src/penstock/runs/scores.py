"""Scores a run: replicas, latency, changes, losses. Tick by tick, or from a journal."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards, find_cooldowns
from penstock.core.histogram import Histogram
from penstock.engines.port import HOSTS
from penstock.runs.result_parts import (
    AgeStatistics,
    CountStatistics,
    LatencyStatistics,
    ObjectiveScore,
    OperatorScore,
    RunScores,
)
from penstock.runs.sample import Sample
from penstock.runs.tick_json import tick_from_json, tick_to_json


class Scores:
    """Adds up ticks; memory does not grow with the length of the run."""

    def __init__(self, objective_s: float | None = None) -> None:
        self._objective_s = objective_s
        self._latency = Histogram()
        self._ages = Sample()
        self._rescales = 0
        self._by_operator: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self._most_in_all = 0
        self._most_executors = 0
        #: Sum and number of what single ticks fell short of the offered load.
        self._degraded, self._measured = 0.0, 0
        #: Ticks at which the policy was asked and had no answer.
        self._unanswered = 0
        self._before: Tick | None = None

    def add(self, tick: Tick) -> None:
        """Count one tick."""
        status = tick.status
        for histogram in status.latency.values():
            self._latency.merge(histogram)
        if status.age_s is not None:
            self._ages.add(status.age_s)
        self._count_replicas(tick)
        self._most_executors = max(self._most_executors, status.executors or 0)
        if tick.applied and tick.decision is not None:
            self._rescales += 1
            for name in tick.decision.changes:
                if name in tick.plan:  # another may be under way since an earlier tick
                    self._by_operator[name] = self._by_operator.get(name, 0) + 1
            placement = tick.decision.placement
            if placement is not None and placement.wanted != placement.current:
                self._by_operator[HOSTS] = self._by_operator.get(HOSTS, 0) + 1
        self._unanswered += tick.snapshot is not None and tick.decision is None
        self._degrade(tick)
        self._before = tick

    @property
    def last(self) -> Tick | None:
        """The last tick that was counted, without what is added up."""
        return self._before

    def to_json(self) -> dict[str, Any]:
        """Write everything that was added up, so that `from_json` can go on with it."""
        return {
            "latency": self._latency.to_json(),
            "ages": self._ages.to_json(),
            "rescales": self._rescales,
            "by_operator": self._by_operator,
            "most": self._most,
            "most_in_all": self._most_in_all,
            "most_executors": self._most_executors,
            "degraded": self._degraded,
            "measured": self._measured,
            "unanswered": self._unanswered,
            "before": tick_to_json(_bare(self._before)) if self._before else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], objective_s: float | None = None) -> "Scores":
        """Read what `to_json` wrote."""
        scores = cls(objective_s)
        scores._latency = Histogram.from_json(data["latency"])
        scores._ages = Sample.from_json(data["ages"])
        scores._rescales, scores._by_operator = data["rescales"], dict(data["by_operator"])
        scores._most, scores._most_in_all = dict(data["most"]), data["most_in_all"]
        scores._most_executors = data["most_executors"]
        scores._degraded, scores._measured = data["degraded"], data["measured"]
        scores._unanswered = data["unanswered"]
        scores._before = tick_from_json(data["before"]) if data["before"] else None
        return scores

    def _count_replicas(self, tick: Tick) -> None:
        """Note the most that ran: now, or since the last tick, when its change was carried out.

        The present alone would miss them in an engine that stands still at every tick's change.
        """
        seen = [tick.status.running]
        if self._before is not None:
            seen.append(self._before.status.requested)
        for replicas in seen:
            self._most_in_all = max(self._most_in_all, sum(replicas.values()))
            for name, k in replicas.items():
                self._most[name] = max(self._most.get(name, 0), k)

    def _degrade(self, tick: Tick) -> None:
        before = self._before.status if self._before else None
        offered = tick.status.offered_records - (before.offered_records if before else 0)
        processed = tick.status.processed_records - (before.processed_records if before else 0)
        if offered:
            self._degraded += abs(offered - processed) / offered
            self._measured += 1

    def result(self) -> RunScores | None:
        """Return the figures of the run so far; None before its first tick."""
        if self._before is None:
            return None
        last, seconds = self._before.status, self._before.at
        total_s, executor_s = sum(last.replica_s.values()), last.executor_s
        return RunScores(
            replicas=CountStatistics(avg=_round(total_s / seconds), max=self._most_in_all),
            latency_s=_latency(self._latency),
            age_s=_ages(self._ages),
            rescales=self._rescales,
            offered_records=last.offered_records,
            processed_records=last.processed_records,
            dropped_records=last.dropped_records,
            backlog_records=last.backlog_records,
            late_records=dict(last.late),
            throughput_degradation=_round(self._degraded / (self._measured or 1)),
            slo=self._slo(),
            replica_hours=_round(total_s / 3600),
            executors=None if executor_s is None else self._executors(executor_s / seconds),
            executor_hours=None if executor_s is None else _round(executor_s / 3600),
            pause_s=last.pause_s,
            operators={
                name: self._operator(name, s / seconds) for name, s in last.replica_s.items()
            },
            unanswered_ticks=self._unanswered,
        )

    def _executors(self, average: float) -> CountStatistics:
        return CountStatistics(avg=_round(average), max=self._most_executors)

    def _slo(self) -> ObjectiveScore:
        if self._objective_s is None or not self._latency.count:
            return ObjectiveScore(objective_s=self._objective_s)
        share = self._latency.share_above(self._objective_s)
        return ObjectiveScore(objective_s=self._objective_s, violated_share=_round(share))

    def _operator(self, name: str, average: float) -> OperatorScore:
        replicas = CountStatistics(avg=_round(average), max=self._most[name])
        return OperatorScore(replicas=replicas, rescales=self._by_operator.get(name, 0))


def score(ticks: Iterable[Tick], objective_s: float | None = None) -> RunScores:
    """Return the figures of recorded ticks, at least one."""
    scores = Scores(objective_s)
    for tick in ticks:
        scores.add(tick)
    result = scores.result()
    if result is None:
        raise ValueError("there is no tick to score")
    return result


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the linear percentile, as the evaluation thesis took it.

    >>> percentile([0, 10, 20, 30, 40], 95)
    38.0
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def _latency(histogram: Histogram) -> LatencyStatistics:
    if not histogram.count:
        return LatencyStatistics()
    return LatencyStatistics(
        avg=_round(histogram.mean),
        p50=_round(histogram.percentile(50)),
        p95=_round(histogram.percentile(95)),
        p99=_round(histogram.percentile(99)),
        max=_round(histogram.max),
    )


def _bare(tick: Tick) -> Tick:
    """What the next tick is compared with."""
    status = replace(
        tick.status, latency=FrozenDict(), events=(), batches=FrozenDict(), is_over=False
    )
    return Tick(at=tick.at, status=status)


def _ages(ages: Sample) -> AgeStatistics:
    if not ages:
        return AgeStatistics()
    return AgeStatistics(
        avg=_round(ages.mean),
        p50=_round(percentile(ages.values, 50)),
        p95=_round(percentile(ages.values, 95)),
        max=_round(ages.max),
    )


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def rescales_possible(duration_s: float, interval_s: float, guards: Guards) -> int:
    """How often a loop with these cool-downs could have acted at most.

    >>> rescales_possible(8400, 15, Guards(cooldown_s=300))
    28
    >>> rescales_possible(8400, 15, Guards(cooldown_down_s=300))  # increases need not wait
    560
    """
    pause_s = max(interval_s, min(find_cooldowns(guards)))
    ticks = -(-pause_s // interval_s)
    return int((duration_s / interval_s - 1) // ticks) + 1
