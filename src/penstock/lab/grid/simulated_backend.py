"""Runs in the simulator, as a kind of runs for the laboratory."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from penstock import control, core, engines
from penstock.core.frozen_dict import FrozenDict, freeze
from penstock.lab.grid.backend import Result, fingerprint
from penstock.runs.simulated_run import prepare_simulation, simulate
from penstock.runs.spec import SimulationSpec

_MAX_TICKS_TRIED = 40


def simulate_to_json(spec: SimulationSpec) -> Result:
    """Simulate, and return the result as it is kept."""
    return simulate(spec).to_json()


@dataclass(frozen=True, slots=True)
class SimulatedBackend:
    """Runs specs in the simulator; other processes import the function by its name."""

    function: Callable[[SimulationSpec], Result] = simulate_to_json

    name: ClassVar[str] = "simulator"
    fields: ClassVar[tuple[str, ...]] = tuple(
        item.name for item in fields(SimulationSpec) if item.name != "seed"
    )
    aliases: ClassVar[Mapping[str, str]] = FrozenDict()
    one_by_one: ClassVar[bool] = False

    def make(self, fields: Mapping[str, Any], seed: int) -> SimulationSpec:
        """Make the spec of a run."""
        return SimulationSpec(**freeze(fields), seed=seed)

    def names(self, spec: SimulationSpec) -> Mapping[str, str]:
        """How the query, the workload and the policy of a run are called."""
        return {"query": spec.query, "workload": spec.workload, "policy": spec.policy}

    def check(self, spec: SimulationSpec) -> None:
        """Make it ready and let its policy answer once."""
        ticks = prepare_simulation(spec).ticks()
        for _, tick in zip(range(_MAX_TICKS_TRIED), ticks, strict=False):
            if tick.decision is not None:
                break

    def inputs(self, spec: SimulationSpec) -> str:
        """Digest of the simulator, the policy's code and everything that is loaded by name."""
        ready = prepare_simulation(spec)
        policy = ready.policy
        source = inspect.unwrap(policy.decide)
        code = Path(inspect.getfile(source)).read_bytes() if inspect.isfunction(source) else b""
        function = (self.function.__module__, self.function.__qualname__)
        return fingerprint(
            (_code_of_simulator(), *function, policy.name, code),
            (ready.profile, ready.pipeline, ready.load, ready.schedule),
            (ready.params, ready.guards, ready.objective_s),
        )

    def run(self, spec: SimulationSpec, _place: Path | None, /) -> Result:
        """Simulate; it leaves nothing but its result."""
        return self.function(spec)


@cache
def _code_of_simulator() -> str:
    """Digest of the code that every run goes through, whatever its policy and load."""
    rooms = (
        *Path(engines.__path__[0]).rglob("*.py"),
        *Path(control.__path__[0]).glob("*.py"),
        *Path(core.__path__[0]).glob("*.py"),
    )
    return fingerprint(*(file.read_bytes() for file in sorted(rooms)))
