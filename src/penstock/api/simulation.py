"""Simulates runs from Python."""

import platform
from pathlib import Path
from typing import Unpack

from penstock import __version__
from penstock.api.options import SimulationOptions, run_objects, spec_fields
from penstock.api.run_handle import Run, open_run, run_in_memory
from penstock.control.loop import Tick
from penstock.control.registry import DEFAULT_SIMULATED_POLICY
from penstock.core.policy import Policy
from penstock.lab.simulation import run_simulation
from penstock.runs.journal import Journal
from penstock.runs.run_directory import RunDirectory
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.workloads.workload import Workload


def simulate(
    query: str = "q1",
    workload: str | Workload = "cosine",
    policy: str | Policy = DEFAULT_SIMULATED_POLICY,
    *,
    out: str | Path | None = None,
    **options: Unpack[SimulationOptions],
) -> Run:
    """Simulate one run; without `out` it is kept in memory.

    `query` names a simulated pipeline or a .toml file. `workload` is a name, an expression such
    as "cosine * 0.01", a trace or a `Workload`. `policy` is a name, a file or a `Policy`. Options
    are those of `penstock simulate`, such as engine, minutes, seed, params and guards.

    >>> run = simulate("q1", "cosine", minutes=5)
    >>> run.result.replicas.max >= 1, run.ticks.num_rows
    (True, 20)
    """
    fields = spec_fields(workload, policy, options)
    spec = SimulationSpec.from_json({"query": query, **fields})
    prepared = prepare_simulation(spec, run_objects(workload, policy))
    if out is not None:
        run_simulation(prepared, Path(out))
        return open_run(out)
    ticks: list[Tick] = []
    result, _ = run_simulation(prepared, None, observers=[ticks.append])
    return run_in_memory(
        RunDirectory(
            directory=Path(),
            spec=spec.to_json(),
            versions={"penstock": __version__, "python": platform.python_version()},
            journal=Journal(prepared.header(), tuple(ticks)),
            result=result,
        )
    )
