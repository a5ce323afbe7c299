"""Many runs: nothing is run twice, nothing is half there, order and processes do not matter."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, PenstockError
from penstock.lab.grid.runner import map_in_parallel, read_kept_results, run_all
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.runs.simulated_run import simulate
from penstock.runs.spec import SimulationSpec

BRIEF = SimulationSpec(minutes=2)
CALLS: list[SimulationSpec] = []


def note(spec: SimulationSpec) -> dict[str, Any]:
    """A run that is quick and remembers that it was asked for."""
    CALLS.append(spec)
    return {"spec": spec.to_json(), "answer": spec.seed}


def fail_at_three(spec: SimulationSpec) -> dict[str, Any]:
    if spec.seed == 3:
        raise InputError("seed", "is three")
    return note(spec)


def interrupt_at_three(spec: SimulationSpec) -> dict[str, Any]:
    if spec.seed == 3:
        raise KeyboardInterrupt
    return note(spec)


def double(number: int) -> int:
    return 2 * number


@pytest.fixture(autouse=True)
def _forget() -> None:
    CALLS.clear()


def cells(*policies: str, seeds: int = 3) -> dict[str, list[SimulationSpec]]:
    return {
        policy: [replace(BRIEF, policy=policy, seed=seed) for seed in range(1, seeds + 1)]
        for policy in policies
    }


def test_results_come_in_the_order_of_their_specs() -> None:
    results = run_all(cells("ds2", "flink"), SimulatedBackend(note), jobs=1)
    assert {cell: [run["answer"] for run in runs] for cell, runs in results.items()} == {
        "ds2": [1, 2, 3],
        "flink": [1, 2, 3],
    }


def test_every_cell_has_a_run_before_any_has_two() -> None:
    run_all(cells("ds2", "flink", seeds=2), SimulatedBackend(note), jobs=1)
    assert [(s.policy, s.seed) for s in CALLS] == [
        ("ds2", 1),
        ("flink", 1),
        ("ds2", 2),
        ("flink", 2),
    ]


def test_processes_answer_as_one_does(tmp_path: Path) -> None:
    specs = {name: runs[:1] for name, runs in cells("ds2", "static").items()}
    together = run_all(specs, SimulatedBackend(), tmp_path, jobs=2)
    assert together == {name: [simulate(runs[0]).to_json()] for name, runs in specs.items()}
    assert sorted(f.name for f in (tmp_path / "results").iterdir()) == [
        "ds2-1.json", "static-1.json",
    ]  # fmt: skip


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    first = run_all(cells("ds2", seeds=2), SimulatedBackend(note), tmp_path, jobs=1)
    CALLS.clear()
    told: list[WorkProgress] = []
    again = run_all(cells("ds2", seeds=3), SimulatedBackend(note), tmp_path, 1, told.append)
    assert [spec.seed for spec in CALLS] == [3]
    assert again["ds2"][:2] == first["ds2"]
    assert told == [WorkProgress(total=3, kept=2, done=0), WorkProgress(total=3, kept=2, done=1)]


def test_what_has_changed_is_run_again(tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(_POLICY)
    spec = replace(BRIEF, policy=str(policy))
    run_all({"a": [spec]}, SimulatedBackend(note), tmp_path, jobs=1)
    run_all({"a": [spec]}, SimulatedBackend(note), tmp_path, jobs=1)
    assert len(CALLS) == 1
    run_all({"a": [replace(spec, minutes=3)]}, SimulatedBackend(note), tmp_path, jobs=1)
    assert len(CALLS) == 2, "another spec"
    run_all({"a": [spec]}, SimulatedBackend(note), tmp_path, jobs=1)
    policy.write_text(_POLICY + "# changed\n")
    run_all({"a": [spec]}, SimulatedBackend(note), tmp_path, jobs=1)
    assert len(CALLS) == 4, "the same spec, another policy"


_POLICY = """
from dataclasses import replace
from penstock.core.policies.static import POLICY as STATIC

def decide(history, applied, params):
    return STATIC.decide(history, applied, params)

POLICY = replace(STATIC, name="mine", decide=decide)
"""


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 1}', '{"version": 0}', '{"version": 1, "spec": []}']
)
def test_half_a_file_counts_as_none(tmp_path: Path, content: str) -> None:
    run_all(cells("ds2", seeds=1), SimulatedBackend(note), tmp_path, jobs=1)
    (tmp_path / "results" / "ds2-1.json").write_text(content)
    run_all(cells("ds2", seeds=1), SimulatedBackend(note), tmp_path, jobs=1)
    assert len(CALLS) == 2


@pytest.mark.parametrize("result", [{}, [], 3, {"specs": {}, "answer": 1}])
def test_a_result_without_its_spec_counts_as_none(tmp_path: Path, result: object) -> None:
    run_all(cells("ds2", seeds=1), SimulatedBackend(note), tmp_path, jobs=1)
    path = tmp_path / "results" / "ds2-1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"result": result}))
    assert read_kept_results(cells("ds2", seeds=1), SimulatedBackend(note), tmp_path).missing == 1


def test_an_interrupt_loses_nothing_that_is_done(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_all(cells("ds2"), SimulatedBackend(interrupt_at_three), tmp_path, jobs=1)
    assert sorted(f.name for f in (tmp_path / "results").iterdir()) == ["ds2-1.json", "ds2-2.json"]


def test_an_error_names_its_run() -> None:
    with pytest.raises(PenstockError, match="run ds2-3: seed: is three"):
        run_all(cells("ds2"), SimulatedBackend(fail_at_three), jobs=1)


def test_a_seed_must_not_be_there_twice() -> None:
    with pytest.raises(InputError, match="cell 'ds2' has seed 1066 twice"):
        run_all({"ds2": [BRIEF, BRIEF]}, SimulatedBackend(note))


def test_a_result_holds_its_spec(tmp_path: Path) -> None:
    run_all(cells("ds2", seeds=1), SimulatedBackend(note), tmp_path, jobs=1)
    stored = json.loads((tmp_path / "results" / "ds2-1.json").read_text())
    assert SimulationSpec.from_json(stored["spec"]) == cells("ds2")["ds2"][0]
    assert stored["version"] == 1 and stored["result"]["answer"] == 1


def test_what_is_missing_or_outdated_is_counted(tmp_path: Path) -> None:
    run_all(cells("ds2", seeds=2), SimulatedBackend(), tmp_path, jobs=1)
    file = tmp_path / "results" / "ds2-1.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"inputs": "of another day"}))
    kept = read_kept_results(cells("ds2", "flink"), SimulatedBackend(), tmp_path)
    assert (kept.missing, kept.outdated) == (4, 1)
    assert [len(runs) for runs in kept.results.values()] == [2, 0]


def test_nothing_to_do_is_no_work() -> None:
    assert run_all({}, SimulatedBackend()) == {}
    assert list(map_in_parallel(double, [])) == []
    assert list(map_in_parallel(double, [4, 5], jobs=1)) == [(0, 8), (1, 10)]
