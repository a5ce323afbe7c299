"""The profiles and pipelines that ship, and those of other people by path."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile, parse_profile
from penstock.errors import InputError, nearest

_OPERATOR_FIELDS = {
    "upstream": tuple,
    "capacity_rate": float,
    "sent": dict,
    "replicas": int,
    "max_replicas": int,
    "state_mb": float,
    "native": bool,
    "distribution": str,
    "scv": float,
    "share": float,
}


def profiles() -> tuple[str, ...]:
    """Names of the profiles that ship."""
    return _names("profiles")


def pipelines() -> tuple[str, ...]:
    """Names of the simulated pipelines that ship."""
    return _names("pipelines")


def load_profile(name: str) -> Profile:
    """Return a profile by name, or from a TOML file by path."""
    data, where = _read(name, "profiles", "engine")
    try:
        return parse_profile(Path(name).stem, data)
    except InputError as wrong:
        raise wrong.at(where) from None


def load_pipeline(name: str) -> SimulatedPipeline:
    """Return a simulated pipeline by name, or from a TOML file by path."""
    data, where = _read(name, "pipelines", "query")
    try:
        return parse_pipeline(Path(name).stem, data)
    except InputError as wrong:
        raise wrong.at(where) from None


def parse_pipeline(name: str, data: Mapping[str, Any]) -> SimulatedPipeline:
    """Read a simulated pipeline from parsed TOML."""
    for key in data:
        if key not in ("summary", "objective_s", "operators"):
            raise InputError(key, "unknown field", nearest(key, ["objective_s", "operators"]))
    operators = []
    for operator, fields in data.get("operators", {}).items():
        for key in fields:
            if key not in _OPERATOR_FIELDS:
                hint = nearest(key, _OPERATOR_FIELDS)
                raise InputError(f"operators.{operator}.{key}", "unknown field", hint)
        if "capacity_rate" not in fields:
            raise InputError(f"operators.{operator}.capacity_rate", "missing")
        values = {key: _OPERATOR_FIELDS[key](value) for key, value in fields.items()}
        operators.append(SimulatedOperator(name=operator, **values))
    if not operators:
        raise InputError("operators", "missing: a pipeline has at least one")
    objective = data.get("objective_s")
    return SimulatedPipeline(name=name, operators=tuple(operators), objective_s=objective)


def _names(room: str) -> tuple[str, ...]:
    files = resources.files(__package__).joinpath(room).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def _read(name: str, room: str, what: str) -> tuple[dict[str, Any], str]:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise InputError(what, f"there is no file {name!r}")
        text, where = path.read_text(encoding="utf-8"), name
    else:
        if name not in _names(room):
            hint = nearest(name, _names(room)) + "; a file is given as ./mine.toml"
            raise InputError(what, f"unknown {what} {name!r}", hint)
        text = resources.files(__package__).joinpath(room, f"{name}.toml").read_text("utf-8")
        where = f"{name}.toml"
    try:
        return tomllib.loads(text), where
    except tomllib.TOMLDecodeError as error:
        raise InputError("", f"not TOML: {error}", where=where) from None
