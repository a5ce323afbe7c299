"""The backends of grids, by name."""

from typing import Any

from penstock.errors import InputError, nearest
from penstock.lab.grid.backend import RunBackend
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.lab.grid.spark_backend import SparkBackend

BACKENDS: dict[str, RunBackend[Any]] = {
    backend.name: backend for backend in (SimulatedBackend(), SparkBackend())
}


def find_backend(name: object) -> RunBackend[Any]:
    """Return a backend by its name."""
    if not isinstance(name, str) or name not in BACKENDS:
        hint = nearest(name, BACKENDS) if isinstance(name, str) else ""
        raise InputError("on", f"must be {' or '.join(BACKENDS)}, got {name!r}", hint)
    return BACKENDS[name]
