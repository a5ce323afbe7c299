"""The score of a policy on its objective: kept, cost, better rivals, rescales."""

from collections.abc import Mapping

import pytest

from penstock.errors import InputError
from penstock.lab.comparison.cells import Group, Row
from penstock.lab.comparison.objective_score import (
    CellScore,
    Roles,
    score_cell,
    score_groups,
    stops_job,
)
from penstock.lab.comparison.statistics import Interval
from penstock.reports.objective_text import as_document, as_json, as_terminal

#: Label: missed share, replica hours, times hindsight, rescales.
Figures = Mapping[str, tuple[float, float, float | None, float]]
SLO = Roles(policy="slo", tuned="ds2", peak="static-peak")
RIVALS: Figures = {
    "slo": (0.004, 10, 1.2, 14),
    "ds2": (0.05, 8, 0.9, 20),
    "hpa-cpu": (0.0, 12, 1.4, 5),
    "static-peak": (0.0, 9, 1.1, 0),
    "ds2 overprovision=1.2": (0.009, 9, 1.1, 18),
    "ds2 overprovision=1.5": (0.0, 11, 1.3, 18),
}


def group_of(figures: Figures, name: str = "q1, cosine") -> Group:
    keys = ("slo_violated_share", "replica_hours", "hindsight_ratio", "rescales")
    rows = tuple(
        Row(
            cell=label,
            label=label,
            policy=label.partition(" ")[0],
            figures={
                key: None if value is None else Interval(value, value, value)
                for key, value in zip(keys, values, strict=True)
            },
            on_front=False,
        )
        for label, values in figures.items()
    )
    return Group(name=name, seeds=(1,), shown=(), rows=rows, pairs=())


def score(figures: Figures) -> CellScore:
    cell = score_cell(group_of(figures), SLO, has_pause=False)
    assert cell is not None
    return cell


def test_a_cell_is_kept_up_to_one_percent_or_what_the_peak_misses() -> None:
    assert score(RIVALS).is_kept
    assert not score({**RIVALS, "slo": (0.02, 10, 1.2, 14)}).is_kept
    loose = {**RIVALS, "slo": (0.02, 10, 1.2, 14), "static-peak": (0.03, 9, 1.1, 0)}
    assert score(loose).is_kept


def test_only_published_defaults_that_are_cheaper_and_miss_no_more_beat_it() -> None:
    assert score(RIVALS).beaten_by == ()
    better = {**RIVALS, "psps": (0.004, 9.9, 1.1, 9), "flink": (0.005, 5, 0.6, 9)}
    assert score(better).beaten_by == ("psps",)


def test_the_best_head_room_is_the_cheapest_that_keeps_the_objective() -> None:
    cell = score(RIVALS)
    assert (cell.tuned, cell.tuned_saving) == ("ds2 overprovision=1.2", pytest.approx(0.1))
    assert cell.is_tuned_cheaper
    assert not score({**RIVALS, "slo": (0.004, 9.2, 1.1, 14)}).is_tuned_cheaper


def test_figures_over_cells_keep_pauses_apart() -> None:
    second = {**RIVALS, "slo": (0.5, 30.0, 2.0, 6.0)}
    groups = [(group_of(RIVALS), False), (group_of(second, "q1, spikes"), True)]
    whole = score_groups(groups, SLO)
    assert (whole.ratio(False), whole.ratio(True)) == (1.2, 2.0)
    assert whole.rescale_ratio == pytest.approx(20 / 40)
    (own,) = [policy for policy in whole.policies if policy.label == "slo"]
    assert (own.kept, own.cells, own.violated) == (1, 2, pytest.approx(0.252))
    text, page = as_terminal(whole), as_document(whole, "penstock lab objective DIR")
    for shown in (text, page):
        assert "1 of 2" in shown and "ds2 overprovision=1.2" in shown
    assert as_json(whole)["figures"]["cells where the objective is kept"] == "1 of 2"


def test_cells_without_a_feasible_hindsight_have_no_ratio() -> None:
    whole = score_groups([(group_of({"slo": (0.0, 1.0, None, 1.0)}), False)], Roles(policy="slo"))
    assert whole.ratio(False) is None
    assert whole.rescale_ratio is None


def test_an_unknown_policy_is_an_error_with_a_hint() -> None:
    with pytest.raises(InputError, match="sol"):
        score_groups([(group_of(RIVALS), False)], Roles(policy="sol"))


def test_engines_that_stop_the_job_have_a_pause() -> None:
    assert stops_job("flink-fair") and stops_job("storm-restart")
    assert not stops_job("spark") and not stops_job("pulsar")
