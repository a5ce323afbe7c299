"""Comparisons of runs from Python."""

from pathlib import Path

import pytest

import penstock


@pytest.fixture(scope="module")
def runs() -> list[penstock.Run]:
    return [penstock.simulate("q1", policy=name, minutes=10) for name in ("ds2", "hpa-cpu")]


def test_runs_are_named_by_their_policies(runs: list[penstock.Run]) -> None:
    table = penstock.compare(runs).table
    assert table["run"].to_pylist() == ["ds2", "hpa-cpu"]
    assert table["latency_p95_s"].to_pylist() == [run.result.latency_s.p95 for run in runs]


def test_names_can_be_given(runs: list[penstock.Run]) -> None:
    comparison = penstock.compare({"now": runs[0], "before": runs[1]})
    assert list(comparison.runs) == ["now", "before"]
    assert "now" in repr(comparison).splitlines()[0]


def test_the_same_policy_twice_gets_numbers(runs: list[penstock.Run]) -> None:
    assert list(penstock.compare([runs[0], runs[0]]).runs) == ["ds2 (1)", "ds2 (2)"]


def test_a_notebook_shows_one_column_per_run(runs: list[penstock.Run]) -> None:
    html = penstock.compare(runs)._repr_html_()
    assert html.count("<th") == 3 and "hpa-cpu" in html


def test_all_runs_are_in_one_picture(runs: list[penstock.Run], tmp_path: Path) -> None:
    svg = penstock.compare(runs).plot(tmp_path / "both.svg").svg
    assert "hpa-cpu" in svg and (tmp_path / "both.svg").is_file()


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(penstock.InputError, match="no run"):
        penstock.compare([])
