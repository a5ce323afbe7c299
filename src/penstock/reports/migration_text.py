"""Results of the migration benchmark as a table beside the paper's, as JSON, and in a page."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.numbers import pretty
from penstock.reports.page_block import write_page_block
from penstock.reports.tables import Table, as_markdown, as_text

if TYPE_CHECKING:  # it loads Spark
    from penstock.pubsub.bench.migration_bench import MigrationResult, MigrationSpec

#: Table I of E-StreamHub: mean and standard deviation of the time of a migration, in seconds.
PAPER = {
    ("access", 0): (0.232, 0.031),
    ("match", 12_500): (1.497, 0.354),
    ("match", 50_000): (2.533, 1.557),
    ("exit", 0): (0.275, 0.052),
}
#: Figure 7: the usual delay, and below what all delays stayed after migrations.
PAPER_USUAL_S, PAPER_MAX_S = 0.5, 2.0
_NAMES = {"access": "AP", "match": "M", "exit": "EP"}
#: The lines of a page between which the table is written.
BLOCK = "penstock pubsub migrate-bench"


def migration_json(results: "Sequence[MigrationResult]") -> list[dict[str, Any]]:
    """Return the figures with those of the paper."""
    return [{**asdict(result), "paper": _find_paper(result)} for result in results]


def migration_text(spec: "MigrationSpec", results: "Sequence[MigrationResult]") -> str:
    """Return the table for a terminal."""
    return as_text(_make_table(spec, results))


def write_migration_page(
    path: Path, spec: "MigrationSpec", results: "Sequence[MigrationResult]"
) -> None:
    """Replace the table in a Markdown page."""
    write_page_block(path, BLOCK, as_markdown(_make_table(spec, results)))


def _make_table(spec: "MigrationSpec", results: "Sequence[MigrationResult]") -> Table:
    columns = (
        "operator",
        "migration\npaper, s",
        "migration\nhere, s",
        "usual gap between\ncommits, s",
        "95 % of usual gaps\n/ usual gap",
        "gap around a move\n/ usual gap, median",
        "the same,\nmaximum",
        "usual delay,\nmedian, s",
        "the same,\nmaximum, s",
        "delay around a\nmove, median, s",
        "the same,\nmaximum, s",
    )
    first = results[0]
    notes = (
        f"{first.moves} migrations of each operator at {spec.publications_per_s:g} publications/s;"
        f" load average {max(result.load_average for result in results):.0f}",
        "migration, paper: mean (standard deviation) of the interruption of a slice, 25 migrations;"
        " here: from the request to the commit of the first batch at the new place",
        f"paper, figure 7: usual delay {PAPER_USUAL_S:g} s, after migrations below"
        f" {PAPER_MAX_S:g} s",
    )
    return Table(columns=columns, rows=tuple(map(_make_row, results)), notes=notes)


def _make_row(result: "MigrationResult") -> tuple[str, ...]:
    name = _NAMES[result.operator]
    shown = f"{name} ({pretty(result.per_slice)})" if result.operator == "match" else name
    paper = _find_paper(result)
    return (
        shown,
        f"{paper[0]:.2f} ({paper[1]:.2f})" if paper else "",
        f"{result.migration_mean_s:.2f} ({result.migration_std_s:.2f})",
        *(
            f"{value:.2f}"
            for value in (
                result.usual_gap_s,
                result.usual_ratio_p95,
                result.gap_ratio_median,
                result.gap_ratio_max,
                result.usual_delay_p50_s,
                result.usual_delay_max_s,
                result.moved_delay_p50_s,
                result.moved_delay_max_s,
            )
        ),
    )


def _find_paper(result: "MigrationResult") -> tuple[float, float] | None:
    return PAPER.get((result.operator, result.per_slice if result.operator == "match" else 0))
