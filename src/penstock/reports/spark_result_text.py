"""The figures of runs on Spark as text: one run, or several policies as one table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.core.numbers import pretty, table_number
from penstock.reports.result_text import late_text, percent
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import short, sparkline
from penstock.reports.timeline import Timeline
from penstock.runs.journal import read_recent, read_ticks
from penstock.runs.result import RunResult
from penstock.runs.result_parts import CountStatistics, RunScores
from penstock.runs.run_directory import JOURNAL
from penstock.runs.spark_result import OperatorAccount, RecordBalance, SparkResult

_WIDTH = 40
#: Maximum number of output topics named.
_MAX_TOPICS = 3
#: More of the records than this above the objective: it was missed.
_FEW_MISSED = 0.05
#: With fewer records, a share of the peak's replicas says nothing.
_MIN_RECORDS = 100


class _MeasuredRun(NamedTuple):
    """A result on Spark with at least one tick."""

    scores: RunScores
    spark: SparkResult
    rescales_possible: int


def _measured(result: RunResult) -> _MeasuredRun | None:
    if result.scores is None or result.spark is None:
        return None
    return _MeasuredRun(result.scores, result.spark, result.rescales_possible)


def report(result: RunResult, directory: Path) -> list[str]:
    """Return one run: charts, replicas of each operator, then the facts."""
    run = _measured(result)
    if run is None:
        return ["nothing was measured: the run ended before its first decision"]
    timeline = Timeline()
    for tick in read_recent(directory / JOURNAL):  # only the last hours of a long run
        timeline.add(tick)
    facts = list(_facts(run))
    wide = max(len(label) for label, _ in facts)
    lines = [line for label, text in facts for line in _fold(f"{label:<{wide}}  {text}", wide + 2)]
    return [*timeline.draw(), "", *_operators(run), "", *lines, *_notes(run.spark, directory)]


def comparison(results: Mapping[str, RunResult], directory: Path) -> list[str]:
    """Return several policies under the same arrivals: a table, then charts over time."""
    runs = {name: _measured(result) for name, result in results.items()}
    measured = {name: run for name, run in runs.items() if run is not None}
    if not measured:
        return ["nothing was measured: the runs ended before their first decision"]
    level = any(run.scores.executors is not None for run in measured.values())
    head = ["policy", "mean", "most", *(["mean", "most"] if level else [])]
    head += ["mean", "p50", "p95", "p99", "inside", "changes", "offered", "lost", "doubled"]
    rows = [_comparison_row(name, run) for name, run in measured.items()]
    peak = max(run.spark.measures.static_peak.replicas for run in measured.values())
    rows.append(["static peak", str(peak), str(peak), *[""] * (len(head) - 3)])
    above = ["", "replicas", "", *(["executors", ""] if level else [])]
    above += ["latency, s", "", "", "", "objective", "", "records", "", ""]
    lines = align_rows([above, head, *rows])
    return [
        *lines,
        "",
        *_charts(measured, directory),
        *_notes(next(iter(measured.values())).spark),
    ]


def _fold(text: str, indent: int = 0) -> list[str]:
    """Break a text into lines of at most 79 characters."""
    below = " " * indent
    return wrap(text, 79, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def _operators(run: _MeasuredRun) -> list[str]:
    static = run.spark.measures.static_peak
    rows = [["operator", "replicas, mean", "most", "for the peak", "changes", "replica-seconds"]]
    for name, operator in run.scores.operators.items():
        replicas = operator.replicas
        at_peak = static.operators.get(name)
        rows.append(
            [
                name,
                table_number(replicas.avg),
                str(replicas.max),
                "-" if at_peak is None else str(at_peak),
                str(operator.rescales),
                _seconds(replicas, run),
            ]
        )
    replicas = run.scores.replicas
    whole = [table_number(replicas.avg), str(replicas.max), str(static.replicas)]
    rows.append(["all", *whole, str(run.scores.rescales), _seconds(replicas, run)])
    return align_rows(rows)


def _seconds(level: CountStatistics, run: _MeasuredRun) -> str:
    """Return replica-seconds or executor-seconds."""
    return pretty(round(level.avg * run.spark.measures.seconds))


def _facts(run: _MeasuredRun) -> Iterator[tuple[str, str]]:
    static = run.spark.measures.static_peak
    if static.replicas and static.peak_rate and run.spark.records.offered >= _MIN_RECORDS:
        share = percent(run.scores.replicas.avg / static.replicas)
        peak = f"the peak of {pretty(round(static.peak_rate, 3))} records/s"
        is_missed = (run.scores.slo.violated_share or 0.0) > _FEW_MISSED
        verdict = ", but the objective was missed: no saving" if is_missed else ""
        yield "replicas", f"{share} of a static deployment for {peak}{verdict}"
        if is_missed:
            yield from _shortages(run)
    latency = run.scores.latency_s
    if latency.avg is not None:
        percents = {"p50": latency.p50, "p95": latency.p95, "p99": latency.p99}
        spread = ", ".join(f"{name} {table_number(value)} s" for name, value in percents.items())
        floor = run.spark.measures.floor_s
        batch = f"; the batches alone take {table_number(floor)} s" if floor is not None else ""
        yield "latency", f"{spread}{batch}"
    yield from _objective(run.scores)
    yield "changes", _changes(run)
    yield "executors", _executors(run)
    yield "records", _records(run.spark.records)
    if late := run.scores.late_records:
        yield "late", late_text(late)


def _shortages(run: _MeasuredRun) -> Iterator[tuple[str, str]]:
    """Name operators that never had the replicas that the peak needs."""
    needed = run.spark.measures.static_peak.operators
    for name, operator in run.scores.operators.items():
        most = operator.replicas.max
        if needed.get(name, 0) > most:
            cause = "the maximum is too low, or the machine too slow"
            yield "too few", f"{name} had {most} at most, the peak needs {needed[name]}: {cause}"


def _objective(scores: RunScores) -> Iterator[tuple[str, str]]:
    objective_s, missed = scores.slo.objective_s, scores.slo.violated_share
    if missed is not None and objective_s is not None:
        inside = percent(1 - missed)
        yield "objective", f"{inside} of the records within {pretty(objective_s)} s"


def _changes(run: _MeasuredRun) -> str:
    seconds, batches = run.spark.measures.change_s, run.spark.measures.change_batches
    count = f"{run.scores.rescales} of {run.rescales_possible} possible"
    if seconds.median is None:
        return count
    return (
        f"{count}; effective after {table_number(seconds.median)} s"
        f" ({_batches(batches.median)}) in the median,"
        f" {table_number(seconds.max)} s ({_batches(batches.max)}) at most"
    )


def _batches(number: float | None) -> str:
    return "1 batch" if number == 1 else f"{pretty(number or 0)} batches"


def _executors(run: _MeasuredRun) -> str:
    level = run.scores.executors
    if level is None:
        return "none: in local mode all replicas share one process"
    changes = run.spark.measures.executor_changes
    parts = [
        f"{table_number(level.avg)} on average, {level.max} at most,"
        f" {_seconds(level, run)} executor-seconds"
    ]
    for count, verb, times, effect in (
        (changes.bought, "requested", changes.bought_s, "ready"),
        (changes.returned, "released", changes.returned_s, "gone"),
    ):
        median_s = times.median
        after = f" ({effect} after {table_number(median_s)} s in the median)" if median_s else ""
        parts.append(f"{count} {verb}{after}")
    return "; ".join(parts)


def _records(records: RecordBalance) -> str:
    parts = [f"{pretty(records.offered)} offered"]
    if records.complete is None:
        rows = (f"{pretty(rows)} in {topic}" for topic, rows in records.topics.items())
        parts += rows
    else:
        parts.append(f"{pretty(records.complete)} processed")
    parts += [f"{pretty(records.lost)} lost", f"{pretty(records.doubled)} doubled"]
    if records.waiting:
        parts.append(f"{pretty(records.waiting)} not finished")
    parts += _done_by_operators(records.operators)
    if records.strange:
        parts.append(f"{pretty(records.strange)} that were never offered")
    if records.put_aside:
        parts.append(f"{pretty(records.put_aside)} sent to dead letters by on_error")
    parts.append(f"{pretty(records.dropped)} dropped")
    return ", ".join(parts)


def _done_by_operators(accounts: Mapping[str, OperatorAccount]) -> Iterator[str]:
    """Yield rows that functions filtered or added, and late rows."""
    for key, verb in (("filtered", "filtered by"), ("expanded", "added by"), ("late", "late for")):
        for name, account in accounts.items():
            if rows := getattr(account, key):
                yield f"{pretty(rows)} {verb} {name}"


def _notes(spark: SparkResult, directory: Path | None = None) -> Iterator[str]:
    service_s = spark.build_args.get("service_s")
    if service_s:
        yield ""
        yield from _fold(
            f"Each record waits {pretty(service_s)} s on average, like a call to a model server;"
            " the other work is real and short."
        )
    if directory is not None and spark.records.topics:
        yield ""
        yield from (
            f"penstock topics tail {directory / 'topics' / topic} shows the output"
            for topic in list(spark.records.topics)[:_MAX_TOPICS]
        )
    if directory is not None and spark.ended in ("stopped", "cut"):
        yield ""
        yield f"penstock run --resume {directory} resumes it"


def _comparison_row(name: str, run: _MeasuredRun) -> list[str]:
    scores, latency, records = run.scores, run.scores.latency_s, run.spark.records
    missed, level = scores.slo.violated_share, scores.executors
    return [
        name,
        table_number(scores.replicas.avg),
        str(scores.replicas.max),
        *([table_number(level.avg), str(level.max)] if level else []),
        *map(table_number, (latency.avg, latency.p50, latency.p95, latency.p99)),
        "-" if missed is None else percent(1 - missed),
        str(scores.rescales),
        pretty(records.offered),
        *map(pretty, (records.lost, records.doubled)),
    ]


def _charts(results: Iterable[str], directory: Path) -> Iterator[str]:
    """Yield replicas and latency of each policy over the same time."""
    ticks = {name: tuple(read_ticks(directory / name / JOURNAL)) for name in results}
    end_s = max((course[-1].at for course in ticks.values() if course), default=1.0)
    replicas = {n: [float(sum(t.status.running.values())) for t in c] for n, c in ticks.items()}
    latency = {name: _means(course) for name, course in ticks.items()}
    # one scale for all policies, so that they can be compared
    most = max((value for values in replicas.values() for value in values), default=0.0)
    longest = max((value for values in latency.values() for value in values), default=0.0)
    head = ["", f"replicas over time, up to {pretty(most)}", f"latency, up to {short(longest)} s"]
    rows = [
        [
            name,
            _draw_line(c, replicas[name], end_s, most),
            _draw_line(c, latency[name], end_s, longest),
        ]
        for name, c in ticks.items()
    ]
    yield from align_rows([head, *rows], words=3)


def _draw_line(ticks: Sequence[Tick], values: Sequence[float], end_s: float, top: float) -> str:
    places: list[list[float]] = [[] for _ in range(_WIDTH)]
    for tick, value in zip(ticks, values, strict=True):
        places[min(_WIDTH - 1, int(tick.at / end_s * _WIDTH))].append(value)
    known, last = [], 0.0
    for place in places:
        last = sum(place) / len(place) if place else last
        known.append(last)
    return sparkline([*known, top])[:-1]


def _means(ticks: Sequence[Tick]) -> list[float]:
    means, last = [], 0.0
    for tick in ticks:
        merged = merge_histograms(tick.status.latency.values())
        last = merged.mean if merged.count else last
        means.append(last)
    return means
