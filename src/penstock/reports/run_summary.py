"""A run in plain sentences with figures, from its directory; and several runs in one table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.core.numbers import pretty
from penstock.decentralized.run_record import PROCESSES
from penstock.errors import InputError
from penstock.reports.result_text import COMPARED_FIGURES, find_figure, percent
from penstock.reports.text_charts import minutes
from penstock.runs.journal_index import JournalIndex
from penstock.runs.result import RunResult
from penstock.runs.result_parts import RunScores
from penstock.runs.scores import Scores

#: Figures of which less is better, and those of which more is.
_LESS_IS_BETTER = {
    *("replicas.avg", "replica_hours", "latency_s.avg", "latency_s.p50", "latency_s.p95"),
    *("latency_s.p99", "latency_s.max", "slo.violated_share", "pause_s", "dropped_records"),
    "backlog_records",
}
_ENDED = {"stopped": "was stopped", "cut": "was cut off with records left"}
_MORE_IS_BETTER = {"processed_records"}
#: Where a run that is neither simulated nor a pipeline on Spark runs, by the engine of its spec.
_PLACES = {
    "prometheus": "metrics of Prometheus",
    "attached": "an attached application",
    PROCESSES: "processes",
}


def title_of(spec: Mapping[str, Any]) -> str:
    """Return pipeline, workload, policy and engine of a run.

    >>> title_of({"query": "q1", "workload": "cosine", "policy": "ds2", "engine": "flink"})
    'q1 under cosine, ds2 on simulated flink'
    """
    pipeline = str(spec.get("pipeline", spec.get("query", "a pipeline"))).rpartition("/")[2]
    load = f" under {spec['workload']}" if spec.get("workload") else ""
    policy = str(spec.get("policy", "a policy")).rpartition("/")[2]
    where = "Spark" if "pipeline" in spec else f"simulated {spec.get('engine', '')}".rstrip()
    where = _PLACES.get(str(spec.get("engine")), where)
    return f"{pipeline}{load}, {policy} on {where}"


def scores_of(index: JournalIndex, result: RunResult | None) -> RunScores | None:
    """Return the figures of a run; those of the ticks so far if it has not finished."""
    if result is not None and result.scores is not None:
        return result.scores
    scores = Scores(index.header.get("objective_s"))
    for number in range(len(index)):
        tick = index.tick(number)
        if tick is not None:
            scores.add(tick)
    return scores.result()


def summarize(scores: RunScores | None, seconds: float, result: RunResult | None) -> Iterator[str]:
    """Yield what happened in a run, one sentence each."""
    if scores is None:
        yield "The run has no tick yet."
        return
    ended = result.spark.ended if result is not None and result.spark is not None else "finished"
    state = "has not finished; its last tick is" if result is None else _ENDED.get(ended, ended)
    offered, processed = scores.offered_records, scores.processed_records
    yield (
        f"The run {state} after {minutes(seconds)}. It was offered {pretty(offered)} records "
        f"and processed {pretty(processed)}; {pretty(scores.backlog_records)} waited at the end."
    )
    yield (
        f"On average {pretty(scores.replicas.avg)} replicas ran, at most "
        f"{pretty(scores.replicas.max)}; that is {pretty(scores.replica_hours)} replica-hours."
    )
    if scores.latency_s.p50 is not None:
        yield (
            f"Half of the records took at most {pretty(scores.latency_s.p50)} s, 95 % took at "
            f"most {pretty(scores.latency_s.p95)} s, the slowest {pretty(scores.latency_s.max)} s."
        )
    objective, missed = scores.slo.objective_s, scores.slo.violated_share
    if objective is not None and missed is not None:
        yield (
            f"The objective is {pretty(objective)} s; "
            + (
                "every record met it."
                if not missed
                else f"{percent(missed)} of the records missed it."
            )
        )
    yield from _changes(scores, result)
    if scores.dropped_records:
        share = percent(scores.dropped_records / offered) if offered else "an unknown share"
        yield f"{pretty(scores.dropped_records)} records were dropped ({share})."


def _changes(scores: RunScores, result: RunResult | None) -> Iterator[str]:
    most = result.rescales_possible if result else 0  # 0 if nobody knows
    possible = f" of {most} possible" if most else ""
    pause = (
        f", and stood still for {pretty(scores.pause_s)} s because of them"
        if scores.pause_s
        else ""
    )
    count = "1 change" if scores.rescales == 1 else f"{pretty(scores.rescales)} changes"
    yield f"It made {count}{possible}{pause}."
    if scores.unanswered_ticks:
        yield f"The policy failed at {pretty(scores.unanswered_ticks)} ticks."


class ComparedFigure(NamedTuple):
    """One row of a comparison: the figure of every run, and which run is best."""

    label: str
    unit: str
    values: tuple[float | None, ...]
    #: The place of the best run; None if the figure has no better, or all are equal.
    best: int | None
    #: How far the best one is from the worst.
    verdict: str


def compare_scores(
    names: Sequence[str], scores: Sequence[RunScores | None]
) -> list[ComparedFigure]:
    """Compare runs figure by figure; a figure that no run has is left out."""
    if len(names) != len(scores):
        raise InputError("runs", "names and scores differ in number")
    tables = [{} if each is None else each.to_json() for each in scores]
    is_fair, rows = has_same_load(scores), []
    for label, path, unit in COMPARED_FIGURES:
        values = tuple(_number(find_figure(table, path)) for table in tables)
        if any(value is not None for value in values):
            best, verdict = _judge(names, values, path) if is_fair else (None, "")
            rows.append(ComparedFigure(label, unit, values, best, verdict))
    return rows


def has_same_load(scores: Sequence[RunScores | None]) -> bool:
    """Whether runs were offered as many records, within 2 %; else none of them is better."""
    offered = [each.offered_records for each in scores if each is not None]
    return bool(offered) and max(offered) - min(offered) <= 0.02 * max(offered)


def remark_comparison(names: Sequence[str], scores: Sequence[RunScores | None]) -> Iterator[str]:
    """Yield what a reader of a comparison must know, one sentence each."""
    if has_same_load(scores):
        yield "One run each: differences say nothing about other seeds or loads."
    else:
        yield "The runs were offered different loads, so none is called better."
    unfinished = [
        f"{name} ({', '.join(parts)})"
        for name, each in zip(names, scores, strict=True)
        if each is not None and (parts := [*_unfinished(each)])
    ]
    if unfinished:
        yield (
            "Records that wait at the end and dropped records have no latency: the rows about "
            f"latency leave them out, so they flatter {' and '.join(unfinished)}."
        )


def _unfinished(scores: RunScores) -> Iterator[str]:
    """Yield the records of a run without a latency."""
    for records, what in ((scores.backlog_records, "waiting"), (scores.dropped_records, "dropped")):
        if records:
            share = (
                f", {percent(records / scores.offered_records)}" if scores.offered_records else ""
            )
            yield f"{pretty(records)} {what}{share}"


def _judge(
    names: Sequence[str], values: Sequence[float | None], path: str
) -> tuple[int | None, str]:
    known = {place: value for place, value in enumerate(values) if value is not None}
    is_ranked = path in _LESS_IS_BETTER or path in _MORE_IS_BETTER
    if not is_ranked or len(known) < 2 or len(set(known.values())) == 1:
        return None, ""
    ordered = sorted(known, key=lambda place: known[place], reverse=path in _MORE_IS_BETTER)
    best, worst = ordered[0], ordered[-1]
    way = "more" if path in _MORE_IS_BETTER else "less"
    base = abs(known[worst])
    if not base:
        return best, ""
    if not known[best]:
        return best, f"{names[best]}: none"
    share = abs(known[worst] - known[best]) / base
    return best, f"{names[best]}: {percent(share)} {way} than {names[worst]}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def figure_text(value: float | None, unit: str) -> str:
    """Write a figure with its unit.

    >>> figure_text(0.0712, "%"), figure_text(3.0, "s"), figure_text(None, "s")
    ('7.12 %', '3 s', '-')
    """
    if value is None:
        return "-"
    return percent(value) if unit == "%" else f"{pretty(value)} {unit}".rstrip()
