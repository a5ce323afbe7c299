"""A comparison for people and for machines: tables, rankings, one page."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.lab.compare import CERTAIN, CONTESTED, COST, HINDSIGHT, LATENCY, Group, Pair, Row
from penstock.lab.statistics import Interval
from penstock.reports.canvas import as_svg
from penstock.reports.page import Drawing, Section, make_page
from penstock.reports.pictures import Point, Range, pareto
from penstock.reports.tables import (
    Table,
    as_csv,
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

Writer = Callable[[float | None, float, float], str]


def as_terminal(groups: Sequence[Group]) -> str:
    """Return tables and rankings as plain text."""
    parts = []
    for group in groups:
        parts += [group.name, "", as_text(_table(group, with_margin, f"± {_over(group)}")), ""]
        parts += [*_rankings(group), "", ""]
    return "\n".join([*parts, _STEPS])


def as_document(name: str, groups: Sequence[Group]) -> str:
    """Return tables, rankings and all pairs as Markdown."""
    parts = [f"# {name}", ""]
    for group in groups:
        parts += [f"## {group.name}", "", as_markdown(_table(group, with_interval)), ""]
        parts += [f"- {line}" for line in _rankings(group)] + ["", _STEPS, ""]
        if group.pairs:
            parts += [as_markdown(_pairs(group)), ""]
    return "\n".join(parts)


def as_page(name: str, groups: Sequence[Group]) -> str:
    """Return one HTML page with a picture for each group."""
    sections = []
    for group in groups:
        section = Section(
            title=group.name,
            paragraphs=(*_rankings(group), _STEPS),
            drawings=_drawings(group),
            tables=(_table(group, with_interval),),
            folded=(_pairs(group),) if group.pairs else (),
        )
        sections.append(section)
    return make_page(name, sections)


def as_spreadsheet(groups: Sequence[Group]) -> str:
    """Return one line for each cell and figure, as CSV."""
    columns = ("group", "cell", "policy", "on_front", "seeds", "figure", "mean", "low", "high")
    return as_csv(columns, (line for group in groups for line in _lines(group)))


def as_json(name: str, groups: Sequence[Group]) -> dict[str, Any]:
    """Return everything for machines."""
    return {
        "name": name,
        "groups": [
            {
                "group": group.name,
                "seeds": list(group.seeds),
                "cells": [_row_json(row) for row in group.rows],
                "pairs": [_pair_json(pair) for pair in group.pairs],
            }
            for group in groups
        ],
    }


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
    notes = (_FRONT, over, *([_HINDSIGHT] if HINDSIGHT.key in shown else []))
    return Table(columns=("policy", *shown.values()), rows=tuple(rows), notes=notes)


def _over(group: Group) -> str:
    return f"is the wider half of the 95 % interval over {len(group.seeds)} paired seeds"


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
            if before is not None:
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
    title = f"{group.name}: cost and latency"
    svg = as_svg(lambda stream: pareto(points, stream, title))
    caption = f"{title}, means and 95 % intervals over {len(group.seeds)} seeds"
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


def _lines(group: Group) -> Iterator[tuple[object, ...]]:
    for row in group.rows:
        for figure in group.shown:
            numbers = _numbers(row.figures[figure.key])
            head = (group.name, row.label, row.policy, int(row.on_front), len(group.seeds))
            yield (*head, figure.key, *numbers.values())


def _numbers(interval: Interval | None) -> dict[str, float | None]:
    """Mean, low and high; None where unknown, for JSON and CSV know no infinity."""
    if interval is None:
        return dict.fromkeys(("mean", "low", "high"))
    known = interval.is_known
    return {
        "mean": _rounded(interval.mean),
        "low": _rounded(interval.low) if known else None,
        "high": _rounded(interval.high) if known else None,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "cell": row.cell,
        "label": row.label,
        "policy": row.policy,
        "on_front": row.on_front,
        "figures": {key: _numbers(interval) for key, interval in row.figures.items()},
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "differences": {
            key: _numbers(found.interval) | {"first_is_less": found.less, "wins": found.wins}
            for key, found in pair.differences.items()
        },
    }
