"""How an operator reaches the processes that run it: by value, through a file of the run."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark import cloudpickle

from penstock.pipelines.operator import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
    """An operator and the schemas of the topics it writes."""

    operator: Operator
    #: By topic; the first is the operator's own output.
    outputs: Mapping[str, pa.Schema] = field(default_factory=dict)
    #: Whether the rows of a frame operator come with their stamps.
    stamped: bool = False


def ship(path: Path, cargo: Cargo) -> None:
    """Write an operator where tasks find it; its module need not be importable there."""
    module = sys.modules.get(cargo.operator.function.__module__)
    is_own = module is None or module.__name__.startswith(("penstock.", "pyspark."))
    if not is_own:
        cloudpickle.register_pickle_by_value(module)
    try:
        data = cloudpickle.dumps(cargo)
    finally:
        if not is_own:
            cloudpickle.unregister_pickle_by_value(module)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid4().hex}")
    aside.write_bytes(data)
    os.replace(aside, path)


def unpack(path: Path) -> Cargo:
    """Read an operator, once a process and version of the file."""
    return _unpack(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _unpack(path: Path, version: int) -> Cargo:  # noqa: ARG001  (part of the key)
    cargo = cloudpickle.loads(path.read_bytes())
    assert isinstance(cargo, Cargo)
    return cargo
