"""The backend with which `penstock reproduce` runs simulations of decentralized scaling.

It has the form of `RunBackend` of the laboratory, which neither imports nor is imported: the
command hands one to the other.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import penstock
from penstock.core.frozen_dict import FrozenDict
from penstock.decentralized.simulator.loads import make_loads
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import summarize

_PACKAGE = Path(penstock.__file__).parent
#: Files, beside those of this folder, whose code determines a result.
_FILES = (
    *("core/instance_decision.py", "core/numbers.py", "workloads/trace_csv.py"),
    *(f"decentralized/{name}.py" for name in ("messages", "node_state", "protocol", "variant")),
)


class DecentralizedBackend:
    """Executes setups; a result is the summary of a simulation."""

    name: ClassVar[str] = "decentralized"
    fields: ClassVar[tuple[str, ...]] = tuple(
        item.name for item in fields(DecentralizedSetup) if item.name != "seed"
    )
    aliases: ClassVar[Mapping[str, str]] = FrozenDict()
    result_keys: ClassVar[tuple[str, ...]] = ()
    is_sequential: ClassVar[bool] = False

    def make(self, fields: Mapping[str, Any], seed: int) -> DecentralizedSetup:
        """Make the setup of a run."""
        return DecentralizedSetup.parse({**fields, "seed": seed})

    def names(self, spec: DecentralizedSetup) -> Mapping[str, str]:
        """Return the names of the pipeline, the load and the policy."""
        query = f"{spec.operators} operators x {spec.instances}"
        return {"query": query, "workload": spec.load, "policy": spec.policy}

    def check(self, spec: DecentralizedSetup) -> None:
        """Make the loads, which may be read from a file."""
        make_loads(spec, Random(spec.seed))

    def inputs(self, spec: DecentralizedSetup) -> str:
        """Return a digest of the code and of the loads."""
        loads = make_loads(spec, Random(spec.seed))
        return sha256(f"{_digest_code()}\n{loads}".encode()).hexdigest()[:20]

    def run(self, spec: DecentralizedSetup, _place: Path | None, /) -> dict[str, Any]:
        """Simulate the setup; it writes no files."""
        return summarize(simulate_setup(spec))


@cache
def _digest_code() -> str:
    files = [*(_PACKAGE / name for name in _FILES), *sorted(Path(__file__).parent.glob("*.py"))]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
