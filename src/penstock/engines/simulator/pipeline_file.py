"""Reads simulated pipelines from TOML files, or from the profile they were measured with."""

from collections.abc import Mapping
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.simulator.batches.model import Batches, Costs
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.errors import InputError, nearest

_OPERATOR_FIELDS = {
    "upstream": tuple,
    "capacity_rate": float,
    "sent": dict,
    "replicas": int,
    "min_replicas": int,
    "max_replicas": int,
    "state_mb": float,
    "native": bool,
    "distribution": str,
    "scv": float,
    "share": float,
    "queue_limit": int,
    "slice_shares": tuple,
    "slices": int,
    "to_all": bool,
    "move_s": float,
    "move_cv": float,
}


_WORDS = {
    tuple: "a list",
    float: "a number",
    dict: "a table",
    int: "a whole number",
    bool: "true or false",
    str: "a text",
}


#: The section with the `--set` values of a measured pipeline; earlier profiles call it `numbers`.
_BUILD_ARGS = ("build_args", "numbers")


def parse_pipeline(name: str, data: Mapping[str, Any]) -> SimulatedPipeline:
    """Read a simulated pipeline from parsed TOML."""
    for key in data:
        if key not in ("summary", "objective_s", *_BUILD_ARGS, "batches", "operators"):
            raise InputError(key, "unknown field", nearest(key, ["objective_s", "operators"]))
    operators = []
    for operator, fields in data.get("operators", {}).items():
        known = [*_OPERATOR_FIELDS, "costs"]
        for key in fields:
            if key not in known:
                hint = nearest(key, known)
                raise InputError(f"operators.{operator}.{key}", "unknown field", hint)
        if "capacity_rate" not in fields:
            raise InputError(f"operators.{operator}.capacity_rate", "missing")
        values = _values(operator, fields)
        costs = _costs(operator, fields["costs"]) if "costs" in fields else None
        operators.append(SimulatedOperator(name=operator, costs=costs, **values))
    if not operators:
        raise InputError("operators", "missing: a pipeline has at least one")
    objective = data.get("objective_s")
    return SimulatedPipeline(
        name=name,
        operators=tuple(operators),
        objective_s=objective,
        build_args=_build_args(data),
        batches=_batches(data.get("batches", {})),
    )


def _build_args(data: Mapping[str, Any]) -> FrozenDict[str, str]:
    tables = (data.get(section, {}) for section in _BUILD_ARGS)
    return FrozenDict({key: str(value) for table in tables for key, value in table.items()})


def _values(operator: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for key, kind in _OPERATOR_FIELDS.items():
        if key in fields:
            try:
                values[key] = kind(fields[key])
            except (TypeError, ValueError, OverflowError):
                where, words = f"operators.{operator}.{key}", _WORDS[kind]
                raise InputError(where, f"must be {words}, got {fields[key]!r}") from None
    return values


def _batches(data: Mapping[str, Any]) -> Mapping[str, float]:
    try:
        batches = Batches.parse(data, "number of batches")
    except InputError as error:
        raise error.under("batches") from None
    return FrozenDict({name: getattr(batches, name) for name in data})


def _costs(operator: str, data: Mapping[str, Any]) -> Costs:
    try:
        return Costs.parse(data, "cost of an operator")
    except InputError as error:
        raise error.under(f"operators.{operator}.costs") from None
