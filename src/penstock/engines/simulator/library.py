"""Loads profiles and simulated pipelines: the built-in ones by name, others by path."""

from importlib import resources
from pathlib import Path
from typing import Any

from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.pipeline_file import parse_pipeline
from penstock.engines.simulator.profile import Profile, parse_profile
from penstock.errors import InputError, nearest
from penstock.files.text import is_file, parse_toml, read_text

#: Former names of profiles, which old run directories and grids still contain.
_ALIASES = {"spark-batches": "spark"}


def profiles() -> tuple[str, ...]:
    """Names of the built-in profiles."""
    return _names("profiles")


def pipelines() -> tuple[str, ...]:
    """Names of the built-in simulated pipelines."""
    return _names("pipelines")


def load_profile(name: str) -> Profile:
    """Return a profile by name, or from a TOML file by path."""
    name = _ALIASES.get(name, name)
    data, where = _read(name, "profiles", "engine")
    try:
        return parse_profile(Path(name).stem, data)
    except InputError as error:
        raise error.at(where) from None


def load_pipeline(name: str) -> SimulatedPipeline:
    """Return a simulated pipeline by name, or from a TOML file by path."""
    data, where = _read(name, "pipelines", "query")
    try:
        return parse_pipeline(Path(name).stem, data)
    except InputError as error:
        raise error.at(where) from None


def _names(folder: str) -> tuple[str, ...]:
    files = resources.files(__package__).joinpath(folder).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def _read(name: str, folder: str, field: str) -> tuple[dict[str, Any], str]:
    if name.endswith(".toml"):
        path = Path(name)
        if not is_file(path):
            raise InputError(field, f"there is no file {name!r}")
        text, where = read_text(path), name
    else:
        if name not in _names(folder):
            hint = nearest(name, _names(folder)) + "; a file is given as ./mine.toml"
            raise InputError(field, f"unknown {field} {name!r}", hint)
        text = resources.files(__package__).joinpath(folder, f"{name}.toml").read_text("utf-8")
        where = f"{name}.toml"
    return parse_toml(text, where), where
