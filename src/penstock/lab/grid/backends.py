"""Which kinds of runs there are."""

from typing import Any

from penstock.errors import InputError, nearest
from penstock.lab.grid.backend import RunBackend
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.lab.grid.spark_backend import SparkBackend

KINDS: dict[str, RunBackend[Any]] = {
    kind.name: kind for kind in (SimulatedBackend(), SparkBackend())
}


def find_kind(name: object) -> RunBackend[Any]:
    """Return a kind by its name."""
    if not isinstance(name, str) or name not in KINDS:
        hint = nearest(name, KINDS) if isinstance(name, str) else ""
        raise InputError("on", f"must be {' or '.join(KINDS)}, got {name!r}", hint)
    return KINDS[name]
