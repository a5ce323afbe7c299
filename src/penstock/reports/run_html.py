"""Runs as HTML fragments for notebooks: the figures as a table, and the picture."""

import io
from collections.abc import Mapping, Sequence
from html import escape

from penstock.core.numbers import pretty
from penstock.errors import InputError
from penstock.reports.result_text import COMPARED_FIGURES, find_figure
from penstock.reports.run_picture import draw_run
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RunDirectory


def run_html(recorded: RunDirectory, title: str, *, is_running: bool) -> str:
    """Return the table and the picture of a run; of a live one, what there is so far."""
    parts = [f"<b>{escape(title)}</b>"]
    if recorded.result is not None:
        parts.append(results_html({"": recorded.result}))
    else:
        state = "running" if is_running else "not finished"
        parts.append(f"<p>{state}, {len(recorded.journal.ticks)} ticks so far</p>")
    return f"<div>{''.join(parts)}{_picture(recorded)}</div>"


def results_html(results: Mapping[str, RunResult]) -> str:
    """Return a table with one column per run."""
    names = [*results]
    head = [["", *names]] if any(names) else []
    rows = [*_figure_rows(results)]
    return _table([*head, *rows], has_head=bool(head))


def _figure_rows(results: Mapping[str, RunResult]) -> list[list[str]]:
    rows = []
    for label, path, unit in COMPARED_FIGURES:
        values = [find_figure(result.to_json(), path) for result in results.values()]
        if any(value is not None for value in values):
            rows.append([label, *(_cell(value, unit) for value in values)])
    return rows


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:.3g}" if unit == "%" else pretty(value)
    return f"{text} {unit}".rstrip()


def _table(rows: Sequence[Sequence[str]], *, has_head: bool) -> str:
    lines = []
    for number, row in enumerate(rows):
        tag = "th" if has_head and number == 0 else "td"
        first, *others = (escape(cell) for cell in row)
        cells = "".join(f'<{tag} style="text-align:right">{cell}</{tag}>' for cell in others)
        lines.append(f'<tr><{tag} style="text-align:left">{first}</{tag}>{cells}</tr>')
    return f"<table>{''.join(lines)}</table>"


def _picture(recorded: RunDirectory) -> str:
    """Return the picture; empty without measures, or where matplotlib is not installed."""
    if not any(tick.snapshot is not None for tick in recorded.journal.ticks):
        return ""
    text = io.StringIO()
    try:
        draw_run(recorded.journal, text, "")
    except InputError:
        return ""
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
