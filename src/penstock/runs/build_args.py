"""Finds a pipeline and builds it: `--set service_s=0.2` becomes an argument of `build`."""

import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from penstock import demos
from penstock.errors import InputError, nearest
from penstock.extras import check_optional
from penstock.nexmark.queries import QUERIES, first_variant
from penstock.nexmark.queries.declaration import declare
from penstock.pipelines.loader import load_file, only_pipeline
from penstock.pipelines.pipeline import Pipeline
from penstock.workloads.workload import Workload

SET = "--set"
#: Modules that pipelines are loaded from.
_ROOMS = ("penstock.demos.", "penstock_pipeline_")


class BuiltPipeline(NamedTuple):
    """A pipeline, and all arguments that it was built with."""

    pipeline: Pipeline
    build_args: Mapping[str, Any]
    #: Declares it anew for events that happen as a workload lets them come, where they have times.
    following: Callable[[Workload], Pipeline] | None = None


def build_pipeline(name: str, given: Mapping[str, Any]) -> BuiltPipeline:
    """Return a ready pipeline, a query, or what is in a file; arguments go to its `build`."""
    if name in QUERIES:
        return _query(name, given)
    pipeline = load_pipeline(name)
    module = _module_of(pipeline)
    build = getattr(module, "build", None)
    if not callable(build):
        if given:
            hint = "write def build(service_s: float = 0.2) -> Pipeline, and PIPELINE = build()"
            raise InputError(SET, f"{name} has no function build", hint)
        return BuiltPipeline(pipeline, {})
    known = inspect.signature(build).parameters
    read = {key: _read(key, text, known) for key, text in given.items()}
    build_args = {key: each.default for key, each in known.items()} | read
    if not read:
        return BuiltPipeline(pipeline, build_args)
    built = build(**read)
    if not isinstance(built, Pipeline):
        raise InputError(SET, f"build of {name} returned {type(built).__name__}, not a Pipeline")
    if not module.__name__.startswith("penstock."):
        # pickling the file's functions by reference looks the pipeline up in its module
        vars(module).update({k: built for k, value in vars(module).items() if value is pipeline})
    return BuiltPipeline(built, build_args)


def _query(name: str, given: Mapping[str, Any]) -> BuiltPipeline:
    known = dict(inspect.signature(declare).parameters)
    del known["query"], known["load"]
    read = {key: _read(key, text, known) for key, text in given.items()}
    chosen = {"variant": first_variant(name), **read}
    build_args = {key: each.default for key, each in known.items()} | chosen

    def following(load: Workload | None) -> Pipeline:
        try:
            return declare(name, load, **read)
        except InputError as wrong:
            raise InputError(f"{SET} {wrong.field}", wrong.problem, wrong.hint) from None

    return BuiltPipeline(following(None), build_args, following)


def _module_of(pipeline: Pipeline) -> ModuleType:
    loaded = [module for name, module in sys.modules.items() if name.startswith(_ROOMS)]
    return next(m for m in loaded if any(value is pipeline for value in vars(m).values()))


def _read(name: str, value: Any, known: Mapping[str, inspect.Parameter]) -> Any:
    """Read an argument as the function's default has it: a whole one, or any."""
    if name not in known:
        raise InputError(f"{SET} {name}", "unknown argument", nearest(name, known))
    kind = type(known[name].default)
    if kind not in (int, float):
        return value
    try:
        return kind(value)
    except ValueError:
        words = "a whole number" if kind is int else "a number"
        raise InputError(f"{SET} {name}", f"must be {words}, got {value!r}") from None


def demo_names() -> tuple[str, ...]:
    """Names of the demo pipelines: one for each module in `demos/`."""
    names = (info.name for info in pkgutil.iter_modules(demos.__path__) if not info.ispkg)
    return tuple(sorted(name.replace("_", "-") for name in names))


def load_pipeline(name: str) -> Pipeline:
    """Return the demo pipeline of that name, or the one in that file."""
    if name.endswith(".py") or "/" in name:
        return only_pipeline(load_file(Path(name)), name)
    if name not in demo_names():
        hint = nearest(name, demo_names()) + (
            "; a file is given as ./my_pipeline.py; a run that a Python program started is resumed"
            " there, with Pipeline.run(out=DIR)"
        )
        raise InputError("pipeline", f"unknown pipeline {name!r}", hint.removeprefix("; "))
    module = import_module(f"{demos.__name__}.{name.replace('-', '_')}")
    for package in getattr(module, "NEEDS", ()):
        check_optional(package, f"pipeline {name}")
    return only_pipeline(module, name)
