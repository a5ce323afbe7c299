"""The backend that executes the runs of a grid in the simulator."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import penstock
from penstock.core.frozen_dict import FrozenDict, freeze
from penstock.lab.grid.backend import Result, fingerprint
from penstock.runs.simulated_run import prepare_simulation, simulate
from penstock.runs.spec import SimulationSpec

PACKAGE = Path(penstock.__file__).parent
#: Packages and modules whose code determines the result of a simulated run.
_ROOMS = ("core", "control", "workloads", "engines/microbatch", "engines/simulator")
_FILES = (
    *("engines/port.py", "engines/base_event.py", "engines/events.py"),
    *("engines/query_events.py", "engines/event_json.py"),
    *("runs/simulated_run.py", "runs/preparation.py"),
    *("runs/scores.py", "runs/sample.py", "runs/result.py", "runs/result_parts.py"),
)
_POLICIES = "penstock.core.policies"
_MAX_TICKS_TRIED = 40


def simulate_to_json(spec: SimulationSpec) -> Result:
    """Simulate a run, and return its result as grids store it."""
    return simulate(spec).to_json()


@dataclass(frozen=True, slots=True)
class SimulatedBackend:
    """Executes specs in the simulator; worker processes import the function by its name."""

    function: Callable[[SimulationSpec], Result] = simulate_to_json

    name: ClassVar[str] = "simulator"
    fields: ClassVar[tuple[str, ...]] = tuple(
        item.name for item in fields(SimulationSpec) if item.name != "seed"
    )
    aliases: ClassVar[Mapping[str, str]] = FrozenDict()
    result_keys: ClassVar[tuple[str, ...]] = ("spec",)
    is_sequential: ClassVar[bool] = False

    def make(self, fields: Mapping[str, Any], seed: int) -> SimulationSpec:
        """Make the spec of a run."""
        return SimulationSpec(**freeze(fields), seed=seed)

    def names(self, spec: SimulationSpec) -> Mapping[str, str]:
        """Return the names of the query, the workload and the policy of a run."""
        return {"query": spec.query, "workload": spec.workload, "policy": spec.policy}

    def check(self, spec: SimulationSpec) -> None:
        """Prepare the run and call its policy once."""
        ticks = prepare_simulation(spec).ticks()
        for _, tick in zip(range(_MAX_TICKS_TRIED), ticks, strict=False):
            if tick.decision is not None:
                break

    def inputs(self, spec: SimulationSpec) -> str:
        """Return a digest of the simulator, the policy's code and everything loaded by name."""
        ready = prepare_simulation(spec)
        policy = (ready.policy.name, policy_digest(ready.policy.decide))
        function = (self.function.__module__, self.function.__qualname__)
        return fingerprint(
            (code_digest(), *function, *policy),
            (ready.profile, ready.pipeline, ready.load, ready.schedule),
            (ready.params, ready.guards, ready.objective_s),
        )

    def run(self, spec: SimulationSpec, _place: Path | None, /) -> Result:
        """Simulate the run; it writes no files."""
        return self.function(spec)


@cache
def code_digest(package: Path = PACKAGE) -> str:
    """Return a digest of the code that all simulated runs share."""
    return fingerprint(*(file.read_bytes() for file in code_files(package)))


def code_files(package: Path) -> list[Path]:
    """Return the files that determine the result of simulated runs, without those of policies.

    Files of Spark, reports and commands are not included.
    """
    files = [package / file for file in _FILES]
    for room in _ROOMS:
        files += (package / room).rglob("*.py")
    policies = package / "core" / "policies"
    return sorted(file for file in files if not file.is_relative_to(policies))


def policy_digest(decide: Callable[..., Any]) -> str:
    """Return a digest of the file of a policy and of all policy files that it imports."""
    function = inspect.unwrap(decide)
    if not inspect.isfunction(function):
        return ""
    files = policy_files(Path(inspect.getfile(function)))
    return fingerprint(*(file.read_bytes() for file in files))


def policy_files(file: Path) -> list[Path]:
    """Return a file and all files of `core/policies` that it imports, directly or not."""
    files: set[Path] = set()
    todo = [file]
    while todo:
        if (current := todo.pop()) not in files:
            files.add(current)
            todo += _imported_policies(current)
    return sorted(files)


def _imported_policies(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_POLICIES):
            place = PACKAGE.parent.joinpath(*str(node.module).split("."))
            names = (place.with_suffix(".py"), *(place / f"{item.name}.py" for item in node.names))
            yield from filter(Path.is_file, names)
