"""A comparison as text, Markdown and HTML: tables, rankings, pictures."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.core.numbers import table_number
from penstock.lab.comparison.cells import (
    CERTAIN,
    CONTESTED,
    COST,
    HINDSIGHT,
    LATENCY,
    Group,
    Pair,
    Row,
)
from penstock.lab.comparison.grid_comparison import GridComparison
from penstock.lab.comparison.statistics import Interval
from penstock.lab.grid.runner import GRID_FILE
from penstock.reports.canvas import render_svg
from penstock.reports.page import Drawing, Section, make_page
from penstock.reports.pictures import Point, Range, draw_pareto
from penstock.reports.tables import (
    Table,
    as_markdown,
    as_text,
    with_interval,
    with_margin,
)

#: Columns of the table; JSON and CSV have all figures.
_COLUMNS = {
    "replicas_avg": "replicas\navg",
    "replicas_max": "replicas\nmax",
    "latency_avg_s": "latency\navg (s)",
    "latency_p50_s": "latency\np50 (s)",
    "latency_p95_s": "latency\np95 (s)",
    "age_avg_s": "age\navg (s)",
    "rescales": "rescales\n/ possible",
    "dropped_share": "dropped\nshare",
    "slo_violated_share": "SLO\nviolated",
    "replica_hours": "replica\nhours",
    "hindsight_ratio": "times\nhindsight",
    "changes": "changes",
    "reversals": "reversals",
}
_FRONT = "* no other policy is both cheaper (replica hours) and faster (mean latency)"
_HINDSIGHT = (
    "times hindsight: replica hours divided by the minimum that always meets the objective; "
    "a policy that misses the objective may need less"
)
_REVERSALS = (
    "changes: of the replicas of any operator, batch by batch; a reversal is a change against the "
    "direction of the operator's change before"
)
_STEPS = (
    "The percentage between two policies is the certainty that the first is better, over paired "
    f"seeds: < from {100 * CERTAIN:g} %, ~ below."
)

_ONE_SEED = "One seed: the certainty of the order is unknown, which ~ stands for."

_DETERMINISTIC = (
    "Deterministic: all seeds give the same results, so the certainty of the order is unknown, "
    "which ~ stands for."
)

Writer = Callable[[float | None, float, float], str]


def as_terminal(grids: Sequence[GridComparison]) -> str:
    """Return tables and rankings as plain text."""
    parts = []
    for grid in grids:
        if len(grids) > 1:
            parts += [grid.name, "=" * len(grid.name), ""]
        parts += [grid.note, ""] if grid.note else []
        for group in grid.groups:
            parts += [group.name, "", as_text(_table(group, with_margin, f"± {_over(group)}")), ""]
            parts += [*_rankings(group), "", ""]
    if (whole := _overview(grids)) is not None:
        parts += [as_text(whole), ""]
    return "\n".join([*parts, *_legend(grids)])


def as_document(heading: str, grids: Sequence[GridComparison], command: str) -> str:
    """Return tables, rankings and pairs as Markdown; one section per grid if there are several."""
    parts = [f"# {heading}", "", f"Made by `{command}`.", ""]
    parts += [line for note in (*_notes(grids), *_legend(grids)) for line in (note, "")]
    if (whole := _overview(grids)) is not None:
        parts += [f"{whole.title}.", "", as_markdown(replace(whole, title="")), ""]
    depth = "###" if len(grids) > 1 else "##"
    for grid in grids:
        parts += [f"## {grid.name}", ""] if len(grids) > 1 else []
        for group in grid.groups:
            parts += [f"{depth} {group.name}", "", as_markdown(_table(group, with_interval)), ""]
            parts += [*(f"- {line}" for line in _rankings(group)), ""]
            if _has_pairs(group):
                pairs = _pairs(group)
                parts += [f"{depth}# {pairs.title}", "", as_markdown(replace(pairs, title="")), ""]
    return "\n".join(parts)


def as_page(heading: str, grids: Sequence[GridComparison], command: str) -> str:
    """Return one HTML page with a picture for each group."""
    whole = _overview(grids)
    sections = [Section(title="Overview", tables=(whole,))] if whole is not None else []
    for grid, group in ((g, group) for g in grids for group in g.groups):
        section = Section(
            title=_group_title(grids, grid, group),
            paragraphs=(*_rankings(group), _steps(group)),
            drawings=_drawings(group),
            tables=(_table(group, with_interval),),
            folded=(_pairs(group),) if _has_pairs(group) else (),
        )
        sections.append(section)
    return make_page(heading, sections, *_notes(grids), f"Made by: {command}")


def _overview(grids: Sequence[GridComparison]) -> Table | None:
    """Return one row per group; None for a single group, which has a table already."""
    groups = [(_group_title(grids, grid, group), group) for grid in grids for group in grid.groups]
    if len(groups) < 2:
        return None
    labels = tuple(dict.fromkeys(row.label for _, group in groups for row in group.rows))
    rows = [(name, *(_means_cell(group, label) for label in labels)) for name, group in groups]
    heading = f"Each cell: {' / '.join(figure.title for figure in CONTESTED)}"
    return Table(title=heading, columns=("", *labels), rows=tuple(rows))


def _group_title(grids: Sequence[GridComparison], grid: GridComparison, group: Group) -> str:
    """Return the name of a group, with its grid if there are several."""
    return f"{grid.name}: {group.name}" if len(grids) > 1 else group.name


def _means_cell(group: Group, label: str) -> str:
    rows = [row for row in group.rows if row.label == label]
    return _means_text(rows[0]) if rows else "-"


def _means_text(row: Row) -> str:
    means = (row.figures[figure.key] for figure in CONTESTED)
    return " / ".join("-" if known is None else table_number(known.mean) for known in means)


def percent(certainty: float) -> str:
    """Write a certainty, never rounded up to 100 %.

    >>> [percent(c) for c in (0.5, 0.984375, 0.9949, 0.99995)]
    ['50 %', '98 %', '99.4 %', '> 99.9 %']
    """
    if certainty > 0.999:
        return "> 99.9 %"
    if certainty > 0.99:
        return f"{math.floor(1000 * certainty) / 10:g} %"
    return f"{math.floor(100 * certainty)} %"


def _table(group: Group, write: Writer, interval: str = "") -> Table:
    keys = {figure.key for figure in group.shown}
    shown = {key: title for key, title in _COLUMNS.items() if key in keys}
    rows = [(_name(row), *(_cell(row, key, write) for key in shown)) for row in group.rows]
    over = interval or f"mean [95 % confidence interval] over {len(group.seeds)} paired seeds"
    if group.is_deterministic:
        over = "deterministic: all seeds gave the same results"
    elif len(group.seeds) == 1:
        over = f"one seed ({group.seeds[0]}): no intervals"
    notes = (
        _FRONT,
        over,
        *([_HINDSIGHT] if HINDSIGHT.key in shown else []),
        *([_REVERSALS] if "reversals" in shown else []),
    )
    return Table(columns=("policy", *shown.values()), rows=tuple(rows), notes=notes)


def _over(group: Group) -> str:
    return f"is the larger half of the 95 % interval over {len(group.seeds)} paired seeds"


def _legend(grids: Sequence[GridComparison]) -> list[str]:
    """Return the meaning of the signs between policies, once."""
    return list(dict.fromkeys(_steps(group) for grid in grids for group in grid.groups))


def _steps(group: Group) -> str:
    if group.is_deterministic:
        return _DETERMINISTIC
    return _ONE_SEED if len(group.seeds) == 1 else _STEPS


def _has_pairs(group: Group) -> bool:
    """Whether there are certainties to show, which need several seeds."""
    return bool(group.pairs) and len(group.seeds) > 1


def _notes(grids: Sequence[GridComparison]) -> Iterator[str]:
    """Yield the notes of the grids, equal ones once."""
    for note in dict.fromkeys(grid.note for grid in grids if grid.note):
        names = ", ".join(grid.name for grid in grids if grid.note == note)
        yield f"{names}: {note}" if len(grids) > 1 else note
    for grid in grids:
        if grid.missing:
            yield f"{grid.name}: {grid.missing} of {grid.runs} runs are missing."


def _name(row: Row) -> str:
    return f"{row.label} *" if row.on_front else row.label


def _cell(row: Row, key: str, write: Writer) -> str:
    interval = row.figures[key]
    if interval is None:
        return "-"
    shown = write(*interval)
    possible = row.figures["rescales_possible"]
    return f"{shown} / {possible.mean:g}" if key == "rescales" and possible else shown


def _rankings(group: Group) -> Iterator[str]:
    for figure in CONTESTED:
        chain, before = "", None
        for row, certainty in group.ranking(figure):
            if before is not None and len(group.seeds) == 1:
                chain += " ~ "
            elif before is not None:
                chain += f" {'<' if before >= CERTAIN else '~'} ({percent(before)}) "
            chain += row.label
            before = certainty
        yield f"{figure.title}: {chain or 'unknown'}"


def _pairs(group: Group) -> Table:
    columns = ["first", "second"]
    for figure in CONTESTED:
        columns += [f"{figure.title},\nfirst - second", "better", "certainty"]
    rows = []
    for pair in group.pairs:
        row = [pair.first, pair.second]
        for figure in CONTESTED:
            row += _verdict(pair, figure.key)
        rows.append(tuple(row))
    return Table(title="Pairwise differences", columns=tuple(columns), rows=tuple(rows), words=2)


def _drawings(group: Group) -> tuple[Drawing, ...]:
    points = [point for row in group.rows if (point := _point(row)) is not None]
    if not points:
        return ()
    title = f"{group.name}: cost and latency"
    svg = render_svg(lambda stream: draw_pareto(points, stream, title))
    many = len(group.seeds) > 1
    over = f"means and 95 % intervals over {len(group.seeds)} seeds" if many else "one seed"
    caption = f"{title}, {over}"
    return (Drawing(svg=svg, caption=caption),)


def _verdict(pair: Pair, key: str) -> list[str]:
    difference = pair.differences.get(key)
    if difference is None:
        return ["-", "-", "-"]
    better = pair.first if difference.less > 0.5 else pair.second
    certain = difference.certainty >= CERTAIN
    return [
        with_interval(*difference.interval),
        better if certain else "undecided",
        percent(difference.certainty),
    ]


def _point(row: Row) -> Point | None:
    cost, latency = row.figures[COST.key], row.figures[LATENCY.key]
    if cost is None or latency is None:
        return None
    return Point(label=row.label, policy=row.policy, cost=_range(cost), latency=_range(latency))


def _range(interval: Interval) -> Range:
    mean, low, high = interval if interval.is_known else (interval.mean,) * 3
    return Range(mean=mean, low=low, high=high)


def gap_notes(grid: GridComparison, directory: Path) -> Iterator[str]:
    """Yield which runs are missing or outdated, and the command that runs them."""
    again = f"; penstock lab run {directory / GRID_FILE} --out {directory} runs them"
    if grid.missing:
        yield f"{grid.missing} runs are missing{again}"
    if grid.outdated:
        changed = "the pipeline, policy, workload or simulator changed since"
        yield f"{grid.outdated} runs are outdated: {changed}{again} again"
