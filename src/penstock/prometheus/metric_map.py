"""A map from series of Prometheus to measures of a snapshot, as a TOML file.

Each query gives one value per operator; a label of its result names the operator. `$name` in a
query stands for a variable of the map, which the command line can set.
"""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError, nearest
from penstock.files.text import parse_toml, read_toml

#: Measures that are shares and may exceed 1 by noise only.
SHARES = ("busy", "idle", "backpressured", "cpu", "input_buffer")
MEASURES = (
    *("input_rate", "output_rate", *SHARES, "queue", "queue_growth", "service_time_s"),
    *("service_scv", "arrival_scv"),
)
#: Queries beside measures; only `running` is required.
OTHER_QUERIES = ("running", "offered", "min_replicas", "max_replicas")
_TABLES = ("version", "about", "operator_label", "variables", "queries", "edges", "topology")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMap:
    """Queries by measure, and where the edges of the pipeline come from."""

    name: str
    operator_label: str
    queries: Mapping[str, str]
    #: A query with one series per edge, and the label that names the upstream operator.
    edges_query: str = ""
    upstream_label: str = "upstream"
    #: Edges that are written down: upstream operators by operator.
    topology: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)


def built_in_maps() -> list[str]:
    """Return the names of the maps in the package."""
    folder = files("penstock.prometheus") / "maps"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir())


def load_map(
    name: str, variables: Mapping[str, str] | None = None, edges: Sequence[tuple[str, str]] = ()
) -> MetricMap:
    """Load a map by the name of a built-in one or by its path; `edges` replace its topology."""
    if name.endswith(".toml") or "/" in name:
        data, where = read_toml(Path(name)), name
    else:
        if name not in built_in_maps():
            hint = nearest(name, built_in_maps()) + "; a file is given as ./map.toml"
            raise InputError("--map", f"unknown map {name!r}", hint)
        item = files("penstock.prometheus") / "maps" / f"{name}.toml"
        data, where = parse_toml(item.read_text(encoding="utf-8"), name), name
    try:
        made = parse_map(data, Path(name).stem, variables or {})
    except InputError as error:
        raise error.at(where) from None
    return made if not edges else _with_edges(made, edges)


def parse_map(data: Mapping[str, Any], name: str, variables: Mapping[str, str]) -> MetricMap:
    """Check a map and fill in its variables; `InputError` names what is wrong."""
    for key in data:
        if key not in _TABLES:
            raise InputError(key, "unknown field of a map", nearest(key, _TABLES))
    if data.get("version") != 1:
        raise InputError("version", f"must be 1, got {data.get('version')!r}")
    label = data.get("operator_label")
    if not isinstance(label, str) or not label:
        raise InputError("operator_label", "missing: the label that names the operator")
    known = {**_texts(data, "variables"), **variables}
    for variable in variables:
        if variable not in data.get("variables", {}):
            hint = nearest(variable, data.get("variables", {}))
            raise InputError("--set", f"the map has no variable {variable!r}", hint)
    queries = _texts(data, "queries")
    for key in queries:
        if key not in (*MEASURES, *OTHER_QUERIES):
            problem = "unknown measure"
            raise InputError(f"queries.{key}", problem, nearest(key, (*MEASURES, *OTHER_QUERIES)))
    if "running" not in queries:
        raise InputError("queries.running", "missing: the running replicas of each operator")
    edges = _texts(data, "edges")
    query = edges.get("query", "")
    return MetricMap(
        name=name,
        operator_label=label,
        queries={key: _fill(f"queries.{key}", text, known) for key, text in queries.items()},
        edges_query=_fill("edges.query", query, known) if query else "",
        upstream_label=edges.get("upstream_label", "upstream"),
        topology=_topology(data.get("topology", {})),
    )


def _texts(data: Mapping[str, Any], table: str) -> dict[str, str]:
    values = data.get(table, {})
    if not isinstance(values, Mapping):
        raise InputError(table, "must be a table")
    for key, value in values.items():
        if not isinstance(value, str):
            raise InputError(f"{table}.{key}", f"must be text, got {value!r}")
    return dict(values)


def _fill(place: str, text: str, variables: Mapping[str, str]) -> str:
    try:
        return string.Template(text).substitute(variables)
    except KeyError as missing:
        hint = f"add it to [variables], or use --set {str(missing)[1:-1]}=VALUE"
        raise InputError(place, f"has no value for ${str(missing)[1:-1]}", hint) from None
    except ValueError:
        raise InputError(place, "has a $ that names no variable", "write $$ for a $") from None


def _topology(data: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(data, Mapping):
        raise InputError("topology", "must be a table: operator = [upstream operators]")
    for name, upstream in data.items():
        if not isinstance(upstream, list) or not all(isinstance(each, str) for each in upstream):
            raise InputError(f"topology.{name}", "must be a list of operators")
    return {name: tuple(upstream) for name, upstream in data.items()}


def _with_edges(made: MetricMap, edges: Sequence[tuple[str, str]]) -> MetricMap:
    topology: dict[str, tuple[str, ...]] = {}
    for feeder, name in edges:
        topology.setdefault(feeder, ())
        topology[name] = (*topology.get(name, ()), feeder)
    return MetricMap(
        name=made.name,
        operator_label=made.operator_label,
        queries=made.queries,
        topology=topology,
    )
