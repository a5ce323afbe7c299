"""Compares the cells of a grid: figures with intervals, paired differences, the Pareto front.

Cells of a group have the same load for the same seed. They are compared pair by pair, over the
seeds that all of them have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from penstock.lab.comparison.measures import measure
from penstock.lab.comparison.statistics import (
    Interval,
    PairedDifference,
    compare_pairs,
    compute_mean_interval,
)
from penstock.lab.grid.grid import Cell

Results = Mapping[str, Sequence[Mapping[str, Any]]]
#: One value for each run, by figure.
Values = Mapping[str, Sequence[float]]

#: Minimum certainty of a significant difference: one side of a 95 % interval.
CERTAIN = 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure to compare; for every figure, less is better."""

    #: Name for machines, as in a column of a CSV file.
    key: str
    title: str
    #: Its path in a result, see `penstock.lab.comparison.measures`.
    measure: str


COST = Figure(key="replica_hours", title="replica hours", measure="replica_hours")
LATENCY = Figure(key="latency_avg_s", title="latency avg (s)", measure="latency_s.avg")
HINDSIGHT = Figure(key="hindsight_ratio", title="× hindsight", measure="hindsight.ratio")
#: From the journals of runs, if they were asked for.
CHANGES = (
    Figure(key="latency_p50_s", title="latency p50 (s)", measure="latency_s.p50"),
    Figure(key="changes", title="changes", measure="changes.number"),
    Figure(key="reversals", title="reversals", measure="changes.reversals"),
)
FIGURES = (
    Figure(key="replicas_avg", title="replicas avg", measure="replicas.avg"),
    Figure(key="replicas_max", title="replicas max", measure="replicas.max"),
    LATENCY,
    Figure(key="latency_p95_s", title="latency p95 (s)", measure="latency_s.p95"),
    Figure(key="age_avg_s", title="age avg (s)", measure="age_s.avg"),
    Figure(key="age_p95_s", title="age p95 (s)", measure="age_s.p95"),
    Figure(key="rescales", title="rescales", measure="rescales"),
    Figure(key="rescales_possible", title="possible", measure="rescales_possible"),
    Figure(key="dropped_share", title="dropped share", measure="dropped_records / offered_records"),
    Figure(key="slo_violated_share", title="SLO violated", measure="slo.violated_share"),
    COST,
)
#: The figures of pairwise comparisons.
CONTESTED = (COST, LATENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one cell; None for a figure that its runs do not have."""

    cell: str
    label: str
    policy: str
    figures: Mapping[str, Interval | None]
    #: Whether no other cell of the group is both cheaper and faster.
    on_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two cells of a group, by their labels: first minus second for each contested figure."""

    first: str
    second: str
    differences: Mapping[str, PairedDifference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cells with the same loads."""

    name: str
    seeds: tuple[int, ...]
    shown: tuple[Figure, ...]
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    #: Whether all seeds give the same results in every cell; then only one seed is compared.
    is_deterministic: bool = False

    def ranking(self, figure: Figure) -> list[tuple[Row, float | None]]:
        """Return rows from best to worst, each with the certainty that it beats the next one."""
        known = [row for row in self.rows if row.figures.get(figure.key) is not None]
        ranked = sorted(known, key=lambda row: _mean(row, figure))
        certainties = [self._certainty(a.label, b.label, figure) for a, b in pairwise(ranked)]
        return list(zip(ranked, [*certainties, None], strict=True)) if ranked else []

    def _certainty(self, better: str, worse: str, figure: Figure) -> float | None:
        for pair in self.pairs:
            difference = pair.differences.get(figure.key)
            if {pair.first, pair.second} == {better, worse} and difference is not None:
                return difference.less if pair.first == better else 1 - difference.less
        return None


def compare(cells: Iterable[Cell], results: Results) -> tuple[Group, ...]:
    """Compare cells group by group; cells without results are left out."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if results.get(cell.name):
            groups.setdefault(cell.group, []).append(cell)
    return tuple(_group(name, members, results) for name, members in groups.items())


def _group(name: str, cells: Sequence[Cell], results: Results) -> Group:
    by_seed = {c.name: {r["spec"]["seed"]: r for r in results[c.name]} for c in cells}
    seeds = sorted(set.intersection(*(set(runs) for runs in by_seed.values())))
    is_deterministic = len(seeds) > 1 and all(map(_have_equal_results, by_seed.values()))
    if is_deterministic:  # equal runs are no further evidence
        seeds = seeds[:1]
    runs = {cell: [results_of[seed] for seed in seeds] for cell, results_of in by_seed.items()}
    shown = (
        *FIGURES,
        *((HINDSIGHT,) if seeds and _have_all(runs, "hindsight") else ()),
        *(CHANGES if seeds and _have_all(runs, "changes") else ()),
    )
    values = {c.name: {f.key: _values(f, runs[c.name]) for f in shown} for c in cells}
    pairs = [
        Pair(
            first=a.label,
            second=b.label,
            differences=_compare_figures(values[a.name], values[b.name]),
        )
        for a, b in combinations(cells, 2)
    ]
    rows = _rows(cells, values)
    return Group(
        name=name,
        seeds=tuple(seeds),
        shown=shown,
        rows=rows,
        pairs=tuple(pairs),
        is_deterministic=is_deterministic,
    )


def _have_all(runs: Mapping[str, Sequence[Mapping[str, Any]]], key: str) -> bool:
    return all(key in run for members in runs.values() for run in members)


def _have_equal_results(runs: Mapping[int, Mapping[str, Any]]) -> bool:
    """Whether the runs of one cell have the same results for all seeds."""
    results = [{key: run[key] for key in run if key != "spec"} for run in runs.values()]
    return all(result == results[0] for result in results)


def _rows(cells: Sequence[Cell], values: Mapping[str, Values]) -> tuple[Row, ...]:
    figures = {
        name: {key: compute_mean_interval(runs) if runs else None for key, runs in own.items()}
        for name, own in values.items()
    }
    front = _front({name: (own[COST.key], own[LATENCY.key]) for name, own in figures.items()})
    return tuple(
        Row(
            cell=cell.name,
            label=cell.label,
            policy=cell.specs[0].policy,
            figures=figures[cell.name],
            on_front=cell.name in front,
        )
        for cell in cells
    )


def _values(figure: Figure, runs: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return one value per run; empty if a run does not have the figure."""
    values = [measure(figure.measure)(run) for run in runs]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _compare_figures(first: Values, second: Values) -> dict[str, PairedDifference]:
    return {
        figure.key: compare_pairs(first[figure.key], second[figure.key])
        for figure in CONTESTED
        if first[figure.key] and second[figure.key]
    }


def _front(points: Mapping[str, tuple[Interval | None, ...]]) -> set[str]:
    """Return the names of the Pareto-optimal points."""
    means = {
        name: tuple(interval.mean for interval in point if interval is not None)
        for name, point in points.items()
        if None not in point
    }
    return {
        name
        for name, mine in means.items()
        if not any(_beats(other, mine) for other in means.values())
    }


def _beats(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def _mean(row: Row, figure: Figure) -> float:
    interval = row.figures[figure.key]
    return interval.mean if interval is not None else float("inf")
