"""Figures of migrations, from commits and delays that are known."""

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.pubsub.bench.broker_traffic import NoticeTimes
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.migration_bench import (
    MigrationResult,
    MigrationSpec,
    SliceMigration,
    summarise,
)
from penstock.pubsub.kernels.backend import Backend
from penstock.reports.migration_text import migration_json, migration_text, write_migration_page

LOAD = BenchSpec(
    subscriptions=1,
    attributes=2,
    match_rate=0.01,
    is_encrypted=True,
    publications=1,
    slices=1,
    threads=1,
    rounds=1,
    seed=0,
    backend=Backend.NUMPY,
)
SPEC = MigrationSpec(per_slice=12_500, moves=2, publications_per_s=100, pause_s=5, load=LOAD)


def make_result(operator: str = "match") -> MigrationResult:
    """Commits every second; the third and the seventh gap are longer, because of moves."""
    commits = [0.0, 1.0, 2.0, 3.2, 4.2, 5.2, 6.2, 7.6, 8.6, 9.8]
    migrations = [
        SliceMigration(operator=operator, asked_at=1.8, before_at=2.0, done_at=3.2),
        SliceMigration(operator=operator, asked_at=6.0, before_at=6.2, done_at=7.6),
    ]
    due = np.array([0.2, 0.5, 2.5, 4.5, 6.0, 8.0])
    delays = np.array([0.9, 1.1, 1.9, 1.0, 2.3, 1.2])
    return summarise(migrations, commits, NoticeTimes(due_s=due, done_s=due + delays), 12_500)


def test_gaps_and_delays_are_told_apart() -> None:
    result = make_result()
    assert (result.operator, result.moves, result.per_slice) == ("match", 2, 12_500)
    assert result.usual_gap_s == pytest.approx(1.0)
    # of seven usual gaps, the longest has 1.2 s
    assert result.usual_ratio_p95 == pytest.approx(1.0 + 0.7 * 0.2)
    assert (result.gap_ratio_median, result.gap_ratio_max) == pytest.approx((1.3, 1.4))
    assert (result.migration_mean_s, result.migration_std_s) == pytest.approx((1.5, 0.1))
    assert (result.usual_delay_p50_s, result.usual_delay_max_s) == pytest.approx((1.05, 1.2))
    assert (result.moved_delay_p50_s, result.moved_delay_max_s) == pytest.approx((2.1, 2.3))


def test_delays_only_around_moves_are_explained() -> None:
    move = SliceMigration(operator="match", asked_at=1.0, before_at=1.0, done_at=2.0)
    due = np.array([1.0, 1.5])
    for times in (
        NoticeTimes(due_s=due, done_s=due + 1),
        NoticeTimes(due_s=due[:0], done_s=due[:0]),
    ):
        with pytest.raises(InputError, match="notices are of moves"):
            summarise([move], [0.0, 1.0, 2.0, 3.0], times, 12_500)


def test_the_table_has_the_papers_figures_beside_ours(tmp_path: Path) -> None:
    results = [make_result("access"), make_result("match")]
    shown = migration_text(SPEC, results)
    assert "0.23 (0.03)  1.50 (0.10)" in shown
    assert "M (12,500)  1.50 (0.35)" in shown
    assert migration_json(results)[1]["paper"] == (1.497, 0.354)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- penstock pubsub migrate-bench -->\nold\n<!-- end -->\nafter\n")
    write_migration_page(page, SPEC, results)
    text = page.read_text()
    assert "old" not in text and "| M (12,500) | 1.50 (0.35) |" in text
    assert text.startswith("before\n") and text.endswith("<!-- end -->\nafter\n")
    page.write_text("nothing")
    with pytest.raises(InputError, match="has no place for the table"):
        write_migration_page(page, SPEC, results)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"per_slice": 0}, "--per-slice: must be at least 1"),
        ({"moves": 0}, "--moves: must be at least 1"),
        ({"publications_per_s": float("inf")}, "--rate: must be above 0 and finite"),
        ({"pause_s": 0.0}, "--pause: must be above 0"),
    ],
)
def test_impossible_benchmarks_are_refused(change: dict[str, float], problem: str) -> None:
    fields = {"per_slice": 1, "moves": 1, "publications_per_s": 1.0, "pause_s": 1.0, **change}
    with pytest.raises(InputError, match=problem):
        MigrationSpec(load=LOAD, **fields)  # type: ignore[arg-type]
