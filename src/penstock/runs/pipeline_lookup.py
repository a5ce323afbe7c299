"""Finds a pipeline: a demo by its name, or the one in a file."""

import pkgutil
from importlib import import_module
from pathlib import Path

from penstock import demos
from penstock.errors import InputError, nearest
from penstock.pipelines.loader import load_file, only_pipeline
from penstock.pipelines.pipeline import Pipeline


def demo_names() -> tuple[str, ...]:
    """Names of the demo pipelines: one for each module in `demos/`."""
    found = (info.name for info in pkgutil.iter_modules(demos.__path__) if not info.ispkg)
    return tuple(sorted(name.replace("_", "-") for name in found))


def load_pipeline(name: str) -> Pipeline:
    """Return the demo pipeline of that name, or the one in that file."""
    if name.endswith(".py") or "/" in name:
        return only_pipeline(load_file(Path(name)), name)
    if name not in demo_names():
        hint = nearest(name, demo_names()) + "; a file is given as ./my_pipeline.py"
        raise InputError("pipeline", f"unknown pipeline {name!r}", hint.removeprefix("; "))
    return only_pipeline(import_module(f"{demos.__name__}.{name.replace('-', '_')}"), name)
