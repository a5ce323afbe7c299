"""Cells side by side: paired seeds, the front, rankings, hindsight."""

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.lab.comparison.cells import COST, FIGURES, HINDSIGHT, LATENCY, Group, compare
from penstock.lab.grid.grid import Cell
from penstock.runs.spec import SimulationSpec

Runs = Mapping[int, tuple[float, float]]


def result(seed: int, cost: float, latency: float, **more: Any) -> dict[str, Any]:
    return {
        "spec": {"seed": seed},
        "replicas": {"avg": cost, "max": 2 * cost},
        "latency_s": {"avg": latency, "p95": 3 * latency},
        "age_s": {"avg": None, "p95": None},
        "rescales": 4,
        "rescales_possible": 28,
        "offered_records": 200,
        "dropped_records": 50,
        "slo": {"objective_s": 60.0, "violated_share": 0.1},
        "replica_hours": cost,
        **more,
    }


def cell(label: str, group: str = "q1, cosine") -> Cell:
    spec = SimulationSpec(policy=label.partition(" ")[0])
    return Cell(name=f"{group}-{label}", group=group, label=label, specs=(spec,))


def group_of(cells: Mapping[str, Runs], **more: Any) -> Group:
    results = {
        f"q1, cosine-{label}": [result(seed, *pair, **more) for seed, pair in runs.items()]
        for label, runs in cells.items()
    }
    (group,) = compare([cell(label) for label in cells], results)
    return group


def test_figures_are_means_over_the_seeds_that_all_have() -> None:
    group = group_of(
        {
            "ds2": {1: (10, 5), 2: (20, 7), 3: (900, 900)},
            "flink": {2: (30, 1), 1: (30, 3)},
        }
    )
    assert group.seeds == (1, 2)
    ds2, flink = group.rows
    assert ds2.figures["replica_hours"] == (15, 10, 20)
    assert ds2.figures["replicas_max"] == (30, 20, 40)
    assert flink.figures["latency_avg_s"] == (2, 1, 3)
    assert flink.figures["dropped_share"] == (0.25, 0.25, 0.25)
    assert ds2.policy == "ds2"


def test_a_figure_that_a_run_does_not_have_is_unknown() -> None:
    (row,) = group_of({"ds2": {1: (1, 1)}}).rows
    assert row.figures["age_avg_s"] is None


def test_pairs_are_compared_seed_by_seed() -> None:
    group = group_of(
        {
            "ds2": {seed: (100 * seed, 5) for seed in range(1, 6)},
            "flink": {seed: (100 * seed + 1, 5) for seed in range(1, 6)},
        }
    )
    (pair,) = group.pairs
    cost, latency = pair.differences[COST.key], pair.differences[LATENCY.key]
    assert cost.interval == (-1, -1, -1) and cost.less == 1 - 0.5 / 32
    assert latency.less == 0.5


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    points = {"ds2": (1, 9), "flink": (5, 2), "dhalion": (6, 3), "static": (5, 2), "psps": (1, 10)}
    group = group_of({label: {1: pair} for label, pair in points.items()})
    assert [row.label for row in group.rows if row.on_front] == ["ds2", "flink", "static"]


def test_a_ranking_says_how_certain_each_step_is() -> None:
    group = group_of(
        {
            "ds2": {1: (5, 1), 2: (5, 1), 3: (5, 1)},
            "flink": {1: (1, 1), 2: (1, 1), 3: (9, 1)},
            "dhalion": {1: (8, 1), 2: (8, 1), 3: (8, 1)},
        }
    )
    ranking = group.ranking(COST)
    assert [row.label for row, _ in ranking] == ["flink", "ds2", "dhalion"]
    first, second, last = (certainty for _, certainty in ranking)
    # -4 -4 +4: four of eight worlds have a larger sum; three have the same one and count half
    assert (first, second, last) == (pytest.approx(0.6875), 0.9375, None)


def test_groups_are_kept_apart_and_cells_without_runs_left_out() -> None:
    cells = [cell("ds2"), cell("flink"), cell("ds2", "q11, cosine"), cell("flink", "q11, cosine")]
    results = {c.name: [result(1, 1, 1)] for c in cells[:3]}
    one, two = compare(cells, results)
    assert (one.name, two.name) == ("q1, cosine", "q11, cosine")
    assert (len(one.rows), len(two.rows), two.pairs) == (2, 1, ())


def test_cells_that_share_no_seed_cannot_be_compared() -> None:
    group = group_of({"ds2": {1: (1, 1)}, "flink": {2: (1, 1)}})
    assert group.seeds == () and group.ranking(COST) == []
    assert all(interval is None for row in group.rows for interval in row.figures.values())


def test_hindsight_is_shown_where_every_run_has_it() -> None:
    assert group_of({"ds2": {1: (1, 1)}}).shown == FIGURES
    group = group_of({"ds2": {1: (1, 1), 2: (2, 1)}}, hindsight={"ratio": 1.5})
    assert group.shown == (*FIGURES, HINDSIGHT)
    assert group.rows[0].figures["hindsight_ratio"] == (1.5, 1.5, 1.5)


def test_runs_that_are_the_same_for_every_seed_are_one_run() -> None:
    same = dict.fromkeys(range(1, 6), (10.0, 5.0))
    other = dict.fromkeys(range(1, 6), (12.0, 4.0))
    group = group_of({"ds2": same, "flink": other})
    assert group.is_deterministic and group.seeds == (1,)
    (_, certainty), _ = group.ranking(COST)
    assert certainty == group_of({"ds2": {1: same[1]}, "flink": {1: other[1]}}).ranking(COST)[0][1]
    drawn = group_of({"ds2": same, "flink": {**other, 3: (12.5, 4.0)}})
    assert not drawn.is_deterministic and drawn.seeds == (1, 2, 3, 4, 5)
