"""The backend for reproductions: its runs are stored, reused, and equal to simulations."""

import json
from pathlib import Path

from penstock.decentralized.simulator.run_backend import DecentralizedBackend
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import summarize
from penstock.lab.grid.runner import read_kept_results, run_all

FIELDS = {"operators": 2, "instances": 2, "steps": 30, "mode": "counted"}


def test_runs_are_stored_and_equal_to_simulations(tmp_path: Path) -> None:
    backend = DecentralizedBackend()
    specs = {"small": [backend.make(FIELDS, seed) for seed in (1, 2)]}
    results = run_all(specs, backend, tmp_path, jobs=1)
    expected = [summarize(simulate_setup(spec)) for spec in specs["small"]]
    assert results["small"] == json.loads(json.dumps(expected))
    kept = read_kept_results(specs, backend, tmp_path)
    assert (kept.missing, kept.outdated) == (0, 0)
    assert kept.results["small"] == results["small"]


def test_the_inputs_of_a_run_follow_its_trace(tmp_path: Path) -> None:
    path, backend = tmp_path / "load.csv", DecentralizedBackend()
    digests = []
    for rate in (10, 20):
        path.write_text("time,rate\n" + "".join(f"{i},{rate}\n" for i in range(30)))
        spec = backend.make({**FIELDS, "load": "trace", "trace": str(path)}, 1)
        backend.check(spec)
        digests.append(backend.inputs(spec))
    assert digests[0] != digests[1]
    assert backend.names(spec)["workload"] == "trace"
