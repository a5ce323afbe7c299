"""A comparison for people: tables, rankings, one page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

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
from penstock.lab.comparison.statistics import Interval
from penstock.reports.canvas import as_svg
from penstock.reports.comparison_json import GroupComparison
from penstock.reports.comparison_overview import overview, title
from penstock.reports.page import Drawing, Section, make_page
from penstock.reports.pictures import Point, Range, pareto
from penstock.reports.tables import (
    Table,
    as_markdown,
    as_text,
    with_interval,
    with_margin,
)

#: Figures of the table for people; the files for machines have all of them.
_COLUMNS = {
    "replicas_avg": "replicas\navg",
    "replicas_max": "replicas\nmax",
    "latency_avg_s": "latency\navg (s)",
    "latency_p95_s": "latency\np95 (s)",
    "age_avg_s": "age\navg (s)",
    "rescales": "rescales\n/ possible",
    "dropped_share": "dropped\nshare",
    "slo_violated_share": "SLO\nviolated",
    "replica_hours": "replica\nhours",
    "hindsight_ratio": "times\nhindsight",
}
_FRONT = "* nothing else here is both cheaper (replica hours) and faster (mean latency)"
_HINDSIGHT = (
    "times hindsight: replica hours over the fewest that keep the objective all the time; "
    "who breaks it may need less"
)
_STEPS = (
    "Each step says how certain it is that the one before is better, over paired seeds: "
    f"< from {100 * CERTAIN:g} % on, ~ below."
)

_ONE_SEED = (
    "One seed: each order was seen once, and nothing tells how certain a step is, "
    "which is what ~ stands for."
)

_DETERMINISTIC = (
    "Deterministic: one run. The seeds change nothing, so nothing tells how certain a step is, "
    "which is what ~ stands for."
)

Writer = Callable[[float | None, float, float], str]


def as_terminal(grids: Sequence[GroupComparison]) -> str:
    """Return tables and rankings as plain text."""
    parts = []
    for grid in grids:
        if len(grids) > 1:
            parts += [grid.name, "=" * len(grid.name), ""]
        parts += [grid.note, ""] if grid.note else []
        for group in grid.groups:
            parts += [group.name, "", as_text(_table(group, with_margin, f"± {_over(group)}")), ""]
            parts += [*_rankings(group), "", ""]
    if (whole := overview(grids)) is not None:
        parts += [as_text(whole), ""]
    return "\n".join([*parts, *_legend(grids)])


def as_document(heading: str, grids: Sequence[GroupComparison], command: str) -> str:
    """Return tables, rankings and pairs as Markdown; one section a grid if there are many."""
    parts = [f"# {heading}", "", f"Made by `{command}`.", ""]
    parts += [line for note in (*_notes(grids), *_legend(grids)) for line in (note, "")]
    if (whole := overview(grids)) is not None:
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


def as_page(heading: str, grids: Sequence[GroupComparison], command: str) -> str:
    """Return one HTML page with a picture for each group."""
    whole = overview(grids)
    sections = [Section(title="Overview", tables=(whole,))] if whole is not None else []
    for grid, group in ((one, group) for one in grids for group in one.groups):
        section = Section(
            title=title(grids, grid, group),
            paragraphs=(*_rankings(group), _steps(group)),
            drawings=_drawings(group),
            tables=(_table(group, with_interval),),
            folded=(_pairs(group),) if _has_pairs(group) else (),
        )
        sections.append(section)
    return make_page(heading, sections, *_notes(grids), f"Made by: {command}")


def percent(certainty: float) -> str:
    """Write a certainty without ever rounding it up to full.

    >>> [percent(c) for c in (0.5, 0.984375, 0.9949, 0.99995)]
    ['50 %', '98 %', '99.4 %', '> 99.9 %']
    """
    if certainty > 0.999:
        return "> 99.9 %"
    if certainty > 0.99:
        return f"{math.floor(1000 * certainty) / 10:g} %"
    return f"{math.floor(100 * certainty)} %"


def _table(group: Group, write: Writer, interval: str = "") -> Table:
    shown = {f.key: _COLUMNS[f.key] for f in group.shown if f.key in _COLUMNS}
    rows = [(_name(row), *(_cell(row, key, write) for key in shown)) for row in group.rows]
    over = interval or f"mean [95 % interval] over {len(group.seeds)} paired seeds"
    if group.is_deterministic:
        over = "deterministic: one run (every seed gave the same results)"
    elif len(group.seeds) == 1:
        over = f"one seed only ({group.seeds[0]}): there are no intervals"
    notes = (_FRONT, over, *([_HINDSIGHT] if HINDSIGHT.key in shown else []))
    return Table(columns=("policy", *shown.values()), rows=tuple(rows), notes=notes)


def _over(group: Group) -> str:
    return f"is the wider half of the 95 % interval over {len(group.seeds)} paired seeds"


def _legend(grids: Sequence[GroupComparison]) -> list[str]:
    """What the signs between policies mean, said once."""
    return list(dict.fromkeys(_steps(group) for grid in grids for group in grid.groups))


def _steps(group: Group) -> str:
    if group.is_deterministic:
        return _DETERMINISTIC
    return _ONE_SEED if len(group.seeds) == 1 else _STEPS


def _has_pairs(group: Group) -> bool:
    """Whether pairs tell more than the table: a certainty, which one seed does not give."""
    return bool(group.pairs) and len(group.seeds) > 1


def _notes(grids: Sequence[GroupComparison]) -> Iterator[str]:
    """What is to be known of the grids; what holds for several is said once."""
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
    return Table(title="Pair by pair", columns=tuple(columns), rows=tuple(rows), words=2)


def _drawings(group: Group) -> tuple[Drawing, ...]:
    points = [point for row in group.rows if (point := _point(row)) is not None]
    if not points:
        return ()
    what = f"{group.name}: cost and latency"
    svg = as_svg(lambda stream: pareto(points, stream, what))
    many = len(group.seeds) > 1
    over = f"means and 95 % intervals over {len(group.seeds)} seeds" if many else "one seed"
    caption = f"{what}, {over}"
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
