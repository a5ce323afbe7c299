"""A report about runs: one HTML page without scripts that can be sent, archived and printed."""

import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.core.reasons import Reason, read_reason
from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.files.text import is_directory, is_file, read_text, write_text
from penstock.reports.decision_story import read_measures, tell_effect, tell_tick
from penstock.reports.event_text import describe_event
from penstock.reports.report_charts import draw_charts
from penstock.reports.run_command import repeat_command
from penstock.reports.run_summary import (
    compare_scores,
    figure_text,
    remark_comparison,
    scores_of,
    summarize,
    title_of,
)
from penstock.reports.styles import PLAIN
from penstock.reports.text_charts import clock, short
from penstock.runs.journal_index import JournalIndex
from penstock.runs.journal_parts import older_parts
from penstock.runs.result_parts import RunScores
from penstock.runs.run_columns import RunColumns, read_columns
from penstock.runs.run_directory import JOURNAL, RESULT, SPEC_FILE, read_result, read_spec_file

#: Changes and events that a report lists; it says how many more there are.
MAX_CHANGES, MAX_EVENTS = 200, 60
#: The report of `penstock run`, in the run directory.
REPORT = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """Everything that a report says about one run."""

    name: str
    title: str
    sentences: tuple[str, ...]
    scores: RunScores | None
    charts: tuple[Mapping[str, Any], ...]
    changes: tuple[Mapping[str, Any], ...]
    changes_left_out: int
    unchanged: tuple[tuple[str, str, int], ...]
    events: tuple[tuple[str, str], ...]
    events_left_out: int
    command: str
    seed: str
    versions: Mapping[str, str]
    spec_text: str


def is_long(directory: Path) -> bool:
    """Whether a run has more than one part of a journal, so that a report takes some seconds."""
    return bool(older_parts(directory / JOURNAL))


def write_report(directories: Sequence[Path], path: Path) -> None:
    """Write the report of some runs into a file."""
    text = render_report([read_reported_run(directory) for directory in directories])
    write_text(path, text, "--out")


def render_report(runs: Sequence[ReportedRun]) -> str:
    """Return the page."""
    jinja2 = import_optional("jinja2", "a report")
    loader = jinja2.PackageLoader("penstock.reports", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    names = [run.name for run in runs]
    page = environment.get_template("report.html").render(
        runs=runs,
        title=runs[0].title if len(runs) == 1 else f"{len(runs)} runs compared",
        compared=compare_scores(names, [run.scores for run in runs]) if len(runs) > 1 else [],
        remarks=[*remark_comparison(names, [run.scores for run in runs])],
        figure_text=figure_text,
        rate_text=lambda rate: "-" if rate is None else short(rate),
        colours=PLAIN,
        made=time.strftime("%Y-%m-%d %H:%M"),
        version=__version__,
    )
    return str(page)


def read_reported_run(directory: Path) -> ReportedRun:
    """Read a run directory, live or finished; `InputError` if it holds no run."""
    if not is_file(directory / SPEC_FILE):
        problem = (
            "is not a run directory" if is_directory(directory) else "there is no such directory"
        )
        hint = f"a run is a directory with {SPEC_FILE} and {JOURNAL}"
        raise InputError("RUN", problem, hint, str(directory))
    spec, versions = read_spec_file(directory / SPEC_FILE)
    index = JournalIndex(directory / JOURNAL)
    index.refresh()
    columns, result = read_columns(index), read_result(directory / RESULT)
    scores = scores_of(index, result)
    seconds = float(columns.times[-1]) if len(columns) else 0.0
    shown = columns.changes[-MAX_CHANGES:]
    events = [*_events(index, columns)]
    return ReportedRun(
        name=directory.resolve().name,
        title=title_of(spec),
        sentences=tuple(summarize(scores, seconds, result)),
        scores=scores,
        charts=tuple(draw_charts(columns, index.header.get("objective_s"))),
        changes=tuple(_changes(index, [number for number, _ in shown])),
        changes_left_out=len(columns.changes) - len(shown),
        unchanged=tuple(_unchanged(columns.unchanged)),
        events=tuple(events[-MAX_EVENTS:]),
        events_left_out=max(0, len(events) - MAX_EVENTS),
        command=repeat_command(spec),
        seed=str(spec.get("seed", "")),
        versions=_versions(versions),
        spec_text=read_text(directory / SPEC_FILE),
    )


def _versions(recorded: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that ran it, and the machine on which the report was made."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return {**recorded, "report made on": machine}


def _changes(index: JournalIndex, numbers: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    measures = read_measures(index.header)
    for number in numbers:
        tick = index.tick(number)
        if tick is None:
            continue
        story = tell_tick(tick, measures)
        targets = [t for t in story["targets"] if t["wanted"] != t["current"]]
        for target in targets:
            target["effect"] = (
                tell_effect(index, number, target["operator"], target["wanted"])
                if tick.applied
                else {"ran_after_s": None, "measured_rate": None}
            )
        yield story | {"targets": targets, "clock": clock(tick.at)}


def _unchanged(counts: "Counter[tuple[str, str]]") -> Iterator[tuple[str, str, int]]:
    for (operator, reason), ticks in sorted(counts.items(), key=lambda item: -item[1])[:30]:
        known = read_reason(reason)
        text = f"{reason}: {known.sentence}" if isinstance(known, Reason) else reason
        yield operator, text, ticks


def _events(index: JournalIndex, columns: RunColumns) -> Iterator[tuple[str, str]]:
    for number in dict.fromkeys(event.tick for event in columns.events):
        tick = index.tick(number)
        for event in tick.status.events if tick is not None else ():
            if text := describe_event(event):
                yield clock(event.at), text
