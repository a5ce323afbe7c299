"""Verdicts on the claims of papers as text, Markdown and HTML."""

from collections.abc import Sequence
from typing import Any

from penstock.core.numbers import table_number
from penstock.lab.papers.claims import Verdict
from penstock.lab.papers.printed_tables import count_ordered_pairs, mean_figures
from penstock.lab.papers.reproduction import Chapter, RedrawnFigure
from penstock.reports.canvas import render_svg
from penstock.reports.page import Drawing, Section, make_page
from penstock.reports.pictures import Panel, PictureLine, draw_over_time
from penstock.reports.tables import Table, as_markdown

LEAD = (
    "Every claim of the papers that a simulator can decide, judged over paired seeds: the claim, "
    "where it stands, what was measured here (mean and 95 % interval), and the answer. An order "
    "counts as shown only if the interval of the paired difference lies on its side. The speeds, "
    "pauses and monitor flaws behind these runs stand, each with its source, in the profiles and "
    "pipelines of src/penstock/engines/simulator; the cells in experiments. "
)
PANELS = {
    "offered": ("offered load", "records/s", False),
    "replicas": ("replicas", "replicas", True),
    "latency": ("latency, end to end", "s", False),
    "age": ("age of records at the source", "s", False),
    "backlog": ("backlog", "records", False),
}


def to_text(chapter: Chapter) -> str:
    """Write a chapter for a terminal."""
    head = f"{chapter.published.title} ({chapter.published.source}), {chapter.seeds} seeds"
    rows = [
        f"{v.answer!s:>13}  {v.claim.id:<16} {v.claim.says}\n{'':32}{v.measured}"
        for v in chapter.verdicts
    ]
    return "\n".join([head, "-" * len(head), *rows, "", chapter.summary])


def to_markdown(chapters: Sequence[Chapter]) -> str:
    """Write all chapters as one document."""
    total = sum(len(chapter.verdicts) for chapter in chapters)
    names = " ".join(chapter.published.paper for chapter in chapters)
    command = "all" if len(chapters) > 1 else names
    lines = [
        "# What the papers claim, and what comes out here",
        "",
        f"Made by `penstock reproduce {command}`; do not edit. {LEAD}{total} claims in all.",
    ]
    for chapter in chapters:
        lines += ["", f"## {chapter.published.title}", "", _source(chapter), ""]
        lines.append(as_markdown(_claims(chapter)))
        if extra := printed_table(chapter):
            lines += ["", "### Beside the published tables", "", as_markdown(extra), ""]
            lines.append(pairs_sentence(chapter))
    return "\n".join(lines).rstrip() + "\n"


def to_html(chapters: Sequence[Chapter]) -> str:
    """Write all chapters as one page with the figures redrawn."""
    sections = []
    for chapter in chapters:
        tables = [_claims(chapter)]
        words = [_source(chapter)]
        if extra := printed_table(chapter):
            tables.append(extra)
            words.append(pairs_sentence(chapter))
        drawings = [_drawing(redrawn) for redrawn in chapter.figures]
        sections.append(
            Section(
                title=chapter.published.title,
                paragraphs=tuple(words),
                tables=tuple(tables),
                drawings=tuple(drawings),
            )
        )
    return make_page("What the papers claim, and what comes out here", sections, LEAD)


def _source(chapter: Chapter) -> str:
    return f"{chapter.published.source}. {chapter.seeds} seeds a cell. {chapter.summary}."


def _claims(chapter: Chapter) -> Table:
    return Table(
        columns=("claim", "what it says", "where", "published", "answer", "measured", "why"),
        rows=tuple(
            (
                v.claim.id,
                v.claim.says,
                v.claim.where,
                v.claim.published,
                str(v.answer),
                v.measured,
                _why(v),
            )
            for v in chapter.verdicts
        ),
        words=7,
    )


def _why(verdict: Verdict) -> str:
    claim = verdict.claim
    without = f"{claim.without_says} ({verdict.without})" if verdict.without else ""
    return " ".join(part for part in (claim.why, without and f"Cause off: {without}.") if part)


def printed_table(chapter: Chapter) -> Table | None:
    """Return the published tables with our figures; None if the paper has no tables."""
    printed = chapter.published.printed
    if printed is None:
        return None
    heads = [head for column in printed.columns for head in (column, "printed")]
    rows = []
    for group, cells in printed.groups.items():
        for cell, theirs in cells.items():
            pairs = zip(mean_figures(printed, chapter.results, cell), theirs, strict=True)
            rows.append((group, cell, *(table_number(figure) for pair in pairs for figure in pair)))
    return Table(columns=("table", "cell", *heads), rows=tuple(rows), words=2)


def pairs_sentence(chapter: Chapter) -> str:
    """Return how many ordered pairs of the printed tables have the same order here."""
    printed = chapter.published.printed
    if printed is None:
        return ""
    main = "{} of {}".format(*count_ordered_pairs(printed, chapter.results, printed.main))
    every = "{} of {}".format(*count_ordered_pairs(printed, chapter.results, printed.columns))
    return (
        "Ordered pairs of policies in these tables (near ties within 10 % left out) that come out "
        f"in the same order here: {main} for {' and '.join(printed.main)}, {every} for all columns."
    )


def _drawing(redrawn: RedrawnFigure) -> Drawing:
    panels = []
    for name in redrawn.figure.panels:
        title, unit, steps = PANELS[name]
        cells = list(redrawn.curves)
        shown = cells[:1] if name == "offered" else cells
        lines = tuple(_line(cell, redrawn, name) for cell in shown)
        panels.append(Panel(title=title, unit=unit, lines=lines, steps=steps))
    svg = render_svg(lambda to: draw_over_time(panels, to, redrawn.figure.title))
    return Drawing(svg=svg, caption=redrawn.figure.title)


def _line(cell: str, redrawn: RedrawnFigure, panel: str) -> PictureLine:
    points = redrawn.curves[cell][panel]
    policy = "" if panel == "offered" else redrawn.policies[cell]
    label = "offered" if panel == "offered" else cell
    return PictureLine(
        label=label,
        minutes=[minute for minute, _ in points],
        values=[value for _, value in points],
        policy=policy,
    )


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON."""
    claim = verdict.claim
    return {
        "id": claim.id,
        "where": claim.where,
        "says": claim.says,
        "answer": str(verdict.answer),
        "measured": verdict.measured,
        "published": claim.published,
        "why": claim.why,
        "without": verdict.without,
    }
