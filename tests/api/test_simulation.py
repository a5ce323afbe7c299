"""Simulated runs from Python: the same figures as the command, as objects and tables."""

import json
import math
import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

import penstock
from penstock.cli.main import main
from penstock.runs.simulated_run import simulate as simulate_spec
from penstock.runs.spec import SimulationSpec


@pytest.fixture(scope="module")
def run() -> penstock.Run:
    return penstock.simulate("q1", policy="ds2", minutes=20, objective_s=10)


def test_the_result_is_that_of_the_command(
    run: penstock.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["simulate", "--minutes", "20", "--objective", "10", "--json", "--no-out"])
    assert run.result.to_json() == json.loads(capsys.readouterr().out)


def test_figures_can_be_read_by_name(run: penstock.Run) -> None:
    result, data = run.result, run.result.to_json()
    assert result.latency_s.p95 == data["latency_s"]["p95"]
    assert (result.replicas.max, result.replica_hours) == (
        data["replicas"]["max"], data["replica_hours"],
    )  # fmt: skip
    assert result.objective.objective_s == 10


@pytest.mark.parametrize("name", ["ticks", "decisions"])
def test_the_documentation_of_a_table_names_its_columns(run: penstock.Run, name: str) -> None:
    text = getattr(penstock.Run, name).__doc__
    assert re.findall(r"`(\w+)`", text) == getattr(run, name).column_names


def test_one_row_per_tick_and_operator(run: penstock.Run) -> None:
    ticks, operators = run.ticks, run.operators
    assert ticks.num_rows == 20 * 60 // 15
    names = set(operators["operator"].to_pylist())
    assert operators.num_rows == ticks.num_rows * len(names)
    for at in (15.0, 600.0, 1200.0):
        rows = operators.filter(pc.field("at_s") == at)
        whole = ticks.filter(pc.field("at_s") == at)
        assert pc.sum(rows["running"]).as_py() == whole["replicas"][0].as_py()


def test_the_mean_of_the_ticks_is_the_figure_of_the_result(run: penstock.Run) -> None:
    # 15 s each: replicas hold from one tick to the next, so the mean is near, not equal
    mean = pc.mean(run.ticks["replicas"]).as_py()
    assert math.isclose(mean, run.result.replicas.avg, rel_tol=0.15)


def test_decisions_have_reasons_and_numbers(run: penstock.Run) -> None:
    changed = run.decisions.filter(pc.field("wanted") != pc.field("current"))
    assert changed.num_rows > 0
    for row in changed.to_pylist():
        assert row["reason"] and row["formula"]
    frame = run.decisions.to_pandas()
    assert set(frame.columns) >= {"at_s", "operator", "current", "wanted", "reason"}


def test_a_decision_is_explained(run: penstock.Run) -> None:
    at = run.decisions["at_s"][-1].as_py()
    text = run.explain(at=at)
    assert text.startswith(f"at {at:,.0f} s, ds2") and "wanted = ceil(" in text
    assert "mapper" not in run.explain(operator="source")


def test_a_picture_is_drawn_and_saved(run: penstock.Run, tmp_path: Path) -> None:
    picture = run.plot(tmp_path / "run.png")
    assert picture.svg.lstrip().startswith("<?xml") and "replicas that run" in picture.svg
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    picture.save(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text(encoding="utf-8") == picture.svg


def test_a_notebook_shows_table_and_picture(run: penstock.Run) -> None:
    html = run._repr_html_()
    assert "<table>" in html and "<svg" in html and "latency, p95" in html


def test_a_text_shows_the_figures(run: penstock.Run) -> None:
    assert repr(run).startswith("q1 under cosine, ds2")
    assert "replica-hours" in repr(run)


def test_a_directory_keeps_the_run(run: penstock.Run, tmp_path: Path) -> None:
    kept = penstock.simulate("q1", policy="ds2", minutes=20, objective_s=10, out=tmp_path / "kept")
    again = penstock.open_run(tmp_path / "kept")
    assert kept.result == again.result == run.result
    assert again.ticks.equals(run.ticks) and again.decisions.equals(run.decisions)
    assert not again.is_running and again.wait()


def test_a_workload_and_a_policy_can_be_objects() -> None:
    def double(
        history: penstock.History, applied: penstock.Applied, params: object
    ) -> penstock.Decision:
        return penstock.each_operator(
            "double",
            history[-1],
            lambda op: penstock.Target(op.parallelism, 2 * op.parallelism, penstock.Reason.FITS),
        )

    policy = penstock.Policy(name="double", summary="twice", paper="none", decide=double)
    load = penstock.Workload.of_steps([100_000.0, 200_000.0])
    run = penstock.simulate("q1", load, policy, guards={"max_increase": "off", "cooldown_s": "off"})
    assert run.spec["workload"] == "custom" and run.spec["policy"] == "double"
    assert run.result.scores is not None
    assert run.result.scores.offered_records == 60 * 300_000
    assert run.result.replicas.max > 20


def test_the_engine_can_be_chosen() -> None:
    run = penstock.simulate("q1", "cosine * 0.0001", "ds2", engine="spark", minutes=3, seed=7)
    spec = SimulationSpec(engine="spark", workload="cosine * 0.0001", minutes=3, seed=7)
    assert run.result == simulate_spec(spec)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"policy": "dhallion"}, "policy"),
        ({"minuts": 3}, "minuts"),
        ({"query": "q99"}, "query"),
        ({"workload": "cosin"}, "workload"),
        ({"guards": {"budgt": 1}}, "guard"),
    ],
)
def test_a_mistake_is_one_clear_error(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(penstock.InputError, match=field):
        penstock.simulate(**arguments)  # type: ignore[arg-type]


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(penstock.InputError, match="is not a run directory"):
        penstock.open_run(tmp_path)
