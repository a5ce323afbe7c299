"""The figures of runs on Spark as text: one run, or several policies as one table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.core.numbers import pretty, table_number
from penstock.reports.result_text import late_text, percent
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import short, sparkline
from penstock.reports.timeline import Timeline
from penstock.runs.journal import read_recent, read_ticks
from penstock.runs.run_directory import JOURNAL

Result = Mapping[str, Any]
_WIDTH = 40
#: Maximum number of output topics named.
_MAX_TOPICS = 3


def report(result: Result, directory: Path) -> list[str]:
    """Return one run: charts, replicas of each operator, then the facts."""
    if "replicas" not in result:
        return ["nothing was measured: the run ended before its first decision"]
    timeline = Timeline()
    for tick in read_recent(directory / JOURNAL):  # of a long run the last hours
        timeline.add(tick)
    facts = list(_facts(result))
    wide = max(len(label) for label, _ in facts)
    lines = [line for label, text in facts for line in _fold(f"{label:<{wide}}  {text}", wide + 2)]
    return [*timeline.draw(), "", *_operators(result), "", *lines, *_notes(result, directory)]


def comparison(results: Mapping[str, Result], directory: Path) -> list[str]:
    """Return several policies under the same arrivals: a table, then charts over time."""
    measured = {name: result for name, result in results.items() if "replicas" in result}
    if not measured:
        return ["nothing was measured: the runs ended before their first decision"]
    level = any("executors" in result for result in measured.values())
    head = ["policy", "mean", "most", *(["mean", "most"] if level else [])]
    head += ["mean", "p50", "p95", "p99", "inside", "changes", "offered", "lost", "doubled"]
    rows = [_compared(name, result) for name, result in measured.items()]
    peak = max(result["static_peak"]["replicas"] for result in measured.values())
    rows.append(["static peak", str(peak), str(peak), *[""] * (len(head) - 3)])
    above = ["", "replicas", "", *(["executors", ""] if level else [])]
    above += ["latency, s", "", "", "", "objective", "", "records", "", ""]
    lines = align_rows([above, head, *rows])
    return [*lines, "", *_charts(measured, directory), *_notes(next(iter(measured.values())))]


def _fold(text: str, indent: int = 0) -> list[str]:
    """Break a text into lines of at most 79 characters."""
    below = " " * indent
    return wrap(text, 79, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def _operators(result: Result) -> list[str]:
    static = result["static_peak"]
    rows = [["operator", "replicas, mean", "most", "for the peak", "changes", "replica-seconds"]]
    for name, figures in result["operators"].items():
        replicas = figures["replicas"]
        at_peak = static["operators"].get(name)
        rows.append(
            [
                name,
                table_number(replicas["avg"]),
                str(replicas["max"]),
                "-" if at_peak is None else str(at_peak),
                str(figures["rescales"]),
                _seconds(replicas, result),
            ]
        )
    replicas = result["replicas"]
    whole = [table_number(replicas["avg"]), str(replicas["max"]), str(static["replicas"])]
    rows.append(["all", *whole, str(result["rescales"]), _seconds(replicas, result)])
    return align_rows(rows)


def _seconds(level: Mapping[str, Any], result: Result) -> str:
    """Return replica-seconds or executor-seconds."""
    return pretty(round(level["avg"] * result["seconds"]))


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    static = result["static_peak"]
    if static["replicas"]:
        share = percent(result["replicas"]["avg"] / static["replicas"])
        peak = f"the peak of {pretty(round(static['peak_rate'], 3))} records/s"
        yield "replicas", f"{share} of a static deployment for {peak}"
    latency = result["latency_s"]
    if latency["avg"] is not None:
        percents = ("p50", "p95", "p99")
        spread = ", ".join(f"{name} {table_number(latency[name])} s" for name in percents)
        floor = result["floor_s"]
        batch = f"; the batches alone take {table_number(floor)} s" if floor is not None else ""
        yield "latency", f"{spread}{batch}"
    yield from _objective(result)
    yield "changes", _changes(result)
    yield "executors", _executors(result)
    yield "records", _records(result["records"])
    if late := result.get("late_records"):
        yield "late", late_text(late)


def _objective(result: Result) -> Iterator[tuple[str, str]]:
    objective_s, missed = result["slo"]["objective_s"], result["slo"]["violated_share"]
    if missed is not None:
        inside = percent(1 - missed)
        yield "objective", f"{inside} of the records within {pretty(objective_s)} s"


def _changes(result: Result) -> str:
    seconds, batches = result["change_s"], result["change_batches"]
    count = f"{result['rescales']} of {result['rescales_possible']} possible"
    if seconds["median"] is None:
        return count
    return (
        f"{count}; effective after {table_number(seconds['median'])} s"
        f" ({pretty(batches['median'])} batches) in the median,"
        f" {table_number(seconds['max'])} s ({pretty(batches['max'])} batches) at most"
    )


def _executors(result: Result) -> str:
    level = result.get("executors")
    if level is None:
        return "none: in local mode all replicas share one process"
    changes = result["executor_changes"]
    parts = [
        f"{table_number(level['avg'])} on average, {level['max']} at most,"
        f" {_seconds(level, result)} executor-seconds"
    ]
    for key, verb, effect in (("bought", "requested", "ready"), ("returned", "released", "gone")):
        median_s = changes[f"{key}_s"]["median"]
        after = f" ({effect} after {table_number(median_s)} s in the median)" if median_s else ""
        parts.append(f"{changes[key]} {verb}{after}")
    return "; ".join(parts)


def _records(records: Mapping[str, Any]) -> str:
    parts = [f"{pretty(records['offered'])} offered"]
    if records["complete"] is None:
        rows = (f"{pretty(rows)} in {topic}" for topic, rows in records["topics"].items())
        parts += rows
    else:
        parts.append(f"{pretty(records['complete'])} processed")
    parts += [f"{pretty(records[key] or 0)} {key}" for key in ("lost", "doubled")]
    if records.get("waiting"):
        parts.append(f"{pretty(records['waiting'])} not finished")
    parts += _done_by_operators(records.get("operators", {}))
    if records["strange"]:
        parts.append(f"{pretty(records['strange'])} that were never offered")
    if records["put_aside"]:
        parts.append(f"{pretty(records['put_aside'])} sent to dead letters by on_error")
    parts.append(f"{pretty(records['dropped'])} dropped")
    return ", ".join(parts)


def _done_by_operators(accounts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield rows that functions filtered or added, and late rows."""
    for key, what in (("filtered", "filtered by"), ("expanded", "added by"), ("late", "late for")):
        for name, account in accounts.items():
            if account[key]:
                yield f"{pretty(account[key])} {what} {name}"


def _notes(result: Result, directory: Path | None = None) -> Iterator[str]:
    service_s = result["numbers"].get("service_s")
    if service_s:
        yield ""
        yield from _fold(
            f"Each record waits {pretty(service_s)} s on average, like a call to a model server;"
            " the other work is real and short."
        )
    if directory is not None and result["records"]["topics"]:
        yield ""
        yield from (
            f"penstock topics tail {directory / 'topics' / topic} shows the output"
            for topic in list(result["records"]["topics"])[:_MAX_TOPICS]
        )
    if directory is not None and result["ended"] in ("stopped", "cut"):
        yield ""
        yield f"penstock run --resume {directory} resumes it"


def _compared(name: str, result: Result) -> list[str]:
    latency, records = result["latency_s"], result["records"]
    missed, level = result["slo"]["violated_share"], result.get("executors")
    return [
        name,
        table_number(result["replicas"]["avg"]),
        str(result["replicas"]["max"]),
        *([table_number(level["avg"]), str(level["max"])] if level else []),
        *(table_number(latency[key]) for key in ("avg", "p50", "p95", "p99")),
        "-" if missed is None else percent(1 - missed),
        str(result["rescales"]),
        pretty(records["offered"]),
        *("-" if records[key] is None else pretty(records[key]) for key in ("lost", "doubled")),
    ]


def _charts(results: Mapping[str, Result], directory: Path) -> Iterator[str]:
    """Replicas and latency of each policy over the same time."""
    ticks = {name: tuple(read_ticks(directory / name / JOURNAL)) for name in results}
    end_s = max((course[-1].at for course in ticks.values() if course), default=1.0)
    replicas = {n: [float(sum(t.status.running.values())) for t in c] for n, c in ticks.items()}
    latency = {name: _means(course) for name, course in ticks.items()}
    # one scale for all policies, so that they can be compared
    most = max((value for values in replicas.values() for value in values), default=0.0)
    longest = max((value for values in latency.values() for value in values), default=0.0)
    head = ["", f"replicas over time, up to {pretty(most)}", f"latency, up to {short(longest)} s"]
    rows = [
        [name, _drawn(c, replicas[name], end_s, most), _drawn(c, latency[name], end_s, longest)]
        for name, c in ticks.items()
    ]
    yield from align_rows([head, *rows], words=3)


def _drawn(ticks: Sequence[Tick], values: Sequence[float], end_s: float, top: float) -> str:
    places: list[list[float]] = [[] for _ in range(_WIDTH)]
    for tick, value in zip(ticks, values, strict=True):
        places[min(_WIDTH - 1, int(tick.at / end_s * _WIDTH))].append(value)
    known, last = [], 0.0
    for place in places:
        last = sum(place) / len(place) if place else last
        known.append(last)
    return sparkline([*known, top])[:-1]


def _means(ticks: Sequence[Tick]) -> list[float]:
    found, last = [], 0.0
    for tick in ticks:
        together = Histogram()
        for histogram in tick.status.latency.values():
            together.merge(histogram)
        last = together.mean if together.count else last
        found.append(last)
    return found
