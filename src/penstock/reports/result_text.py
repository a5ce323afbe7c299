"""The figures of simulated runs as text: one run, or several side by side."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.core.numbers import pretty
from penstock.reports.tables import align_rows
from penstock.runs.result import HindsightCost, RunResult
from penstock.runs.result_parts import RunScores

#: Rows of a comparison: label, path into the result, unit.
COMPARED_FIGURES = (
    ("replicas, mean", "replicas.avg", ""),
    ("replicas, max", "replicas.max", ""),
    ("replica-hours", "replica_hours", ""),
    ("latency, mean", "latency_s.avg", "s"),
    ("latency, p50", "latency_s.p50", "s"),
    ("latency, p95", "latency_s.p95", "s"),
    ("latency, p99", "latency_s.p99", "s"),
    ("latency, max", "latency_s.max", "s"),
    ("above the objective", "slo.violated_share", "%"),
    ("changes", "rescales", ""),
    ("paused by changes", "pause_s", "s"),
    ("processed", "processed_records", "records"),
    ("dropped", "dropped_records", "records"),
    ("waiting at the end", "backlog_records", "records"),
)


def report(result: RunResult) -> list[str]:
    """Return one run: replicas and latency, totals, operators."""
    scores = result.scores
    if scores is None:
        return ["nothing was measured: the run ended before its first tick"]
    return [*_spread(scores), "", *_facts(result, scores), "", *_operators(scores)]


def comparison(results: Mapping[str, RunResult]) -> list[str]:
    """Return several runs, one column each."""
    rows = [["", *results, ""]]
    for label, path, unit in COMPARED_FIGURES:
        values = [find_figure(result.to_json(), path) for result in results.values()]
        if any(value is not None for value in values):
            rows.append([label, *(_shown(value, unit) for value in values), unit])
    lines = align_rows([row[:-1] for row in rows])
    wide = max(map(len, lines))
    return [f"{line:<{wide}} {row[-1]}".rstrip() for line, row in zip(lines, rows, strict=True)]


def find_figure(result: Mapping[str, Any], path: str) -> Any:
    """Return a figure by its path; None if the run has no such figure.

    >>> find_figure({"slo": {"objective_s": 60.0}}, "slo.objective_s")
    60.0
    """
    value: Any = result
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def percent(share: float) -> str:
    """Write a share.

    >>> percent(0.0712), percent(0.00001), percent(0.0)
    ('7.12 %', '0.001 %', '0 %')
    """
    return f"{100 * share:.3g} %"


def _shown(value: Any, unit: str) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.3g}" if unit == "%" else pretty(value)


def _spread(scores: RunScores) -> list[str]:
    columns = ("avg", "p50", "p95", "p99", "max")
    rows = [["", "mean", *columns[1:]]]
    for label, statistics in (
        ("replicas", scores.replicas.to_json()),
        ("latency, s", scores.latency_s.to_json()),
        ("age, s", scores.age_s.to_json()),
    ):
        if statistics["avg"] is not None:
            rows.append([label, *(_cell(statistics, column) for column in columns)])
    return align_rows(rows)


def _cell(statistics: Mapping[str, float], column: str) -> str:
    return pretty(statistics[column]) if column in statistics else ""


def _facts(result: RunResult, scores: RunScores) -> list[str]:
    rows = [*_count_facts(result, scores), *_cost_facts(result, scores)]
    return align_rows(rows, words=2)


def _count_facts(result: RunResult, scores: RunScores) -> Iterator[tuple[str, str]]:
    offered = scores.offered_records
    yield "changes", f"{scores.rescales} of {result.rescales_possible} possible"
    if unanswered := scores.unanswered_ticks:
        yield "unanswered", f"{unanswered} decisions: the policy failed, see penstock explain"
    if scores.pause_s:
        yield "paused by changes", f"{pretty(scores.pause_s)} s"
    yield "offered", f"{pretty(offered)} records"
    yield "processed", f"{pretty(scores.processed_records)} records"
    dropped = scores.dropped_records
    share = f" ({percent(dropped / offered)})" if dropped and offered else ""
    yield "dropped", f"{pretty(dropped)} records{share}"
    if late := scores.late_records:
        yield "late", late_text(late)
    yield "waiting", f"{pretty(scores.backlog_records)} records at the end"
    objective, missed = scores.slo.objective_s, scores.slo.violated_share
    if missed is not None and objective is not None:
        yield "objective", f"{pretty(objective)} s, missed by {percent(missed)} of the records"


def late_text(late: Mapping[str, int]) -> str:
    """Return how many rows were late, by operator.

    >>> late_text({"minutes": 3, "sessions": 1})
    '4 rows came after the watermark: minutes 3, sessions 1'
    """
    each = ", ".join(f"{name} {pretty(rows)}" for name, rows in late.items())
    return f"{pretty(sum(late.values()))} rows came after the watermark: {each}"


def _cost_facts(result: RunResult, scores: RunScores) -> Iterator[tuple[str, str]]:
    yield "cost", f"{pretty(scores.replica_hours)} replica-hours"
    if result.hindsight is not None:
        yield "hindsight", _hindsight(result.hindsight)


def _operators(scores: RunScores) -> list[str]:
    rows: list[Sequence[str]] = [["operator", "replicas, mean", "most", "changes"]]
    for name, operator in scores.operators.items():
        numbers = (operator.replicas.avg, operator.replicas.max, operator.rescales)
        rows.append([name, *(pretty(number) for number in numbers)])
    return align_rows(rows)


def _hindsight(cost: HindsightCost) -> str:
    least = f"{pretty(cost.replica_hours)} replica-hours"
    if cost.ratio is None:
        return f"nothing meets the objective here; the least late course takes {least}"
    return f"{least} would have done; the run took {cost.ratio:.3g} times"
