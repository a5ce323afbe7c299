"""The distance to hindsight: once for each load, kept, and shared by all policies."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.lab.hindsight import bounds
from penstock.lab.hindsight.bounds import add_hindsight
from penstock.lab.hindsight.cheapest_run import compute_hindsight
from penstock.runs.simulated_run import PreparedSimulation, prepare_simulation
from penstock.runs.spec import SimulationSpec

BRIEF = SimulationSpec(minutes=2)


def run_of(hours: float, **fields: Any) -> dict[str, Any]:
    return {"spec": SimulationSpec(minutes=2, **fields).to_json(), "replica_hours": hours}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[PreparedSimulation]:
    calls: list[PreparedSimulation] = []

    def two_hours(prepared: PreparedSimulation) -> Any:
        calls.append(prepared)
        return SimpleNamespace(replica_hours=2.0, feasible=True)

    monkeypatch.setattr(bounds, "compute_hindsight", two_hours)
    return calls


def test_policies_under_the_same_load_share_the_bound(asked: list[PreparedSimulation]) -> None:
    results = {
        "ds2": [run_of(3, seed=1), run_of(4, seed=2)],
        "flink": [run_of(5, seed=1, policy="flink"), run_of(6, seed=2, policy="flink")],
    }
    bounded = add_hindsight(results, jobs=1)
    assert [run["hindsight"]["ratio"] for runs in bounded.values() for run in runs] == [
        1.5, 2.0, 2.5, 3.0,
    ]  # fmt: skip
    assert len(asked) == 2


def test_bounds_are_kept_in_the_directory(asked: list[PreparedSimulation], tmp_path: Path) -> None:
    results = {"ds2": [run_of(3)]}
    first = add_hindsight(results, tmp_path, jobs=1)
    assert add_hindsight(results, tmp_path, jobs=1) == first
    assert len(asked) == 1
    (file,) = (tmp_path / "hindsight").iterdir()
    file.write_text("{")
    assert add_hindsight(results, tmp_path, jobs=1) == first
    assert len(asked) == 2, "half a file counts as none"


def test_another_engine_has_another_bound(asked: list[PreparedSimulation]) -> None:
    add_hindsight({"a": [run_of(3), run_of(3, engine="spark")]}, jobs=1)
    assert len(asked) == 2


def test_it_is_the_bound_of_the_laboratory() -> None:
    ((run,),) = add_hindsight({"a": [run_of(3)]}, jobs=1).values()
    assert run["hindsight"]["replica_hours"] == pytest.approx(
        compute_hindsight(prepare_simulation(BRIEF)).replica_hours, rel=1e-5
    )


def test_an_error_names_its_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: PreparedSimulation) -> Any:
        raise PenstockError("no way")

    monkeypatch.setattr(bounds, "compute_hindsight", fail)
    with pytest.raises(PenstockError, match="hindsight of q1, cosine, seed 1066: no way"):
        add_hindsight({"a": [run_of(3)]}, jobs=1)
