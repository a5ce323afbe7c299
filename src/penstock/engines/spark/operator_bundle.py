"""The bundle of an operator: its code by value, in a file that other processes load."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pyarrow as pa
from pyspark import cloudpickle

from penstock.engines.spark.io.plans import load_pickle
from penstock.engines.spark.kinds.kind import SparkKind
from penstock.files.atomic import replace
from penstock.pipelines.operator import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBundle:
    """An operator, its kind, and the schemas of its topics."""

    operator: Operator
    #: Part of the bundle, because other processes have no registry of kinds.
    kind: SparkKind
    #: By topic; the first is the main output.
    outputs: Mapping[str, pa.Schema] = field(default_factory=dict)
    #: By topic, in the order of the arguments of a sliced operator's function.
    inputs: Mapping[str, pa.Schema] = field(default_factory=dict)
    #: Whether the rows of a frame operator have the column `_event`.
    stamped: bool = False


def save_bundle(path: Path, bundle: OperatorBundle, modules: Iterable[ModuleType] = ()) -> None:
    """Write the bundle of an operator for its tasks.

    The modules of function and kind, and the given ones, are pickled by value: other processes
    need not be able to import them.
    """
    operators = bundle.operator.members or (bundle.operator,)
    functions = (operator.function.__module__ for operator in operators)
    names = (*functions, type(bundle.kind).__module__)
    homes = {sys.modules[name] for name in names if name in sys.modules}
    with ExitStack() as stack:
        for module in {*modules, *homes}:
            stack.enter_context(_by_value(module))
        data = cloudpickle.dumps(bundle)  # type: ignore[no-untyped-call]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, data)


@contextmanager
def _by_value(module: ModuleType) -> Iterator[None]:
    if module.__name__.startswith(("penstock.", "pyspark.")):
        yield
        return
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def load_bundle(path: Path) -> OperatorBundle:
    """Read a bundle, once per process and version of the file."""
    return _unpack(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _unpack(path: Path, version: int) -> OperatorBundle:  # noqa: ARG001  (part of the key)
    bundle = load_pickle(path)
    assert isinstance(bundle, OperatorBundle)
    return bundle
