"""A pipeline as JSON, and what two descriptions of one tell about going on with a run.

A run keeps the description of the pipeline it began with. Whoever resumes it with a changed
file learns what changed, and what of it does not fit the records that are there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from types import CodeType
from typing import Any

from penstock.errors import InputError
from penstock.pipelines.operator import Operator, Options
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.slicing import Slicing
from penstock.topics.schema import schema_text

VERSION = 1

_FIXED = ("kind", "reads", "writes", "slicing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two descriptions."""

    what: str
    #: Whether a run can go on with it.
    compatible: bool
    #: What it means, or what to do.
    hint: str = ""


def describe(pipeline: Pipeline) -> dict[str, Any]:
    """Write a pipeline as JSON: everything but the functions, of which a digest is kept."""
    return {
        "version": VERSION,
        "name": pipeline.name,
        "summary": pipeline.summary,
        "objective_s": pipeline.objective_s,
        "topics": {
            topic.name: {
                "schema": None if topic.schema is None else schema_text(topic.schema),
                "keep": topic.keep,
                "external": topic.external,
            }
            for topic in pipeline.topics.values()
        },
        "produces": {
            feed.topic: {
                "arrivals": feed.arrivals,
                "share": feed.share,
                "code": digest(feed.make),
            }
            for feed in pipeline.feeds.values()
        },
        "operators": {
            operator.name: _operator(operator) for operator in pipeline.operators.values()
        },
    }


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """List what changed from one description to another, what does not fit first."""
    for description in (old, new):
        if description.get("version") != VERSION:
            problem = f"cannot read version {description.get('version')}, only {VERSION}"
            raise InputError("version", problem)
    found = [
        *_whole(old, new),
        *_each("topic", old["topics"], new["topics"], _topic_changes),
        *_each("rows of topic", old["produces"], new["produces"], _other_changes),
        *_each("operator", old["operators"], new["operators"], _operator_changes),
    ]
    return sorted(found, key=lambda change: change.compatible)


def digest(function: Callable[..., Any] | None) -> str:
    """Tell whether two functions do the same, wherever they stand in their files.

    What they call is not looked into. Empty for what is not written in Python.
    """
    code = getattr(function, "__code__", None)
    return sha256(repr(_code(code)).encode()).hexdigest()[:16] if code else ""


def _operator(operator: Operator) -> dict[str, Any]:
    resource = operator.options.resource
    name = getattr(resource, "__qualname__", type(resource).__qualname__) if resource else None
    return {
        "kind": operator.kind,
        "reads": list(operator.reads),
        "writes": operator.writes,
        "options": {**_plain(operator.options), "resource": name},
        "slicing": _slicing(operator.slicing),
        "code": digest(operator.function),
        "resource_code": digest(resource),
    }


def _slicing(slicing: Slicing | None) -> dict[str, Any] | None:
    """What the state rests on; delays and where late rows go may change."""
    if slicing is None:
        return None
    keys = {topic: list(columns) for topic, columns in slicing.keys.items()}
    columns = {"state": slicing.state, "state_key": slicing.state_key}
    return {"keys": keys, "slices": slicing.slices, "time": slicing.time, **columns}


def _plain(options: Options) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if name != "resource"}


def _code(code: CodeType) -> tuple[object, ...]:
    constants = tuple(map(_constant, code.co_consts))
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _constant(value: object) -> object:
    if isinstance(value, frozenset):  # written in another order by every process
        return sorted(map(repr, value))
    return _code(value) if isinstance(value, CodeType) else value


def _whole(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    if old["name"] != new["name"]:
        yield Change(
            what=f"the pipeline is called {new['name']!r}, not {old['name']!r}",
            compatible=False,
            hint="this run belongs to another pipeline: begin a new one",
        )
    if old["objective_s"] != new["objective_s"]:
        yield _differs("objective_s", old["objective_s"], new["objective_s"])


def _each(
    kind: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    compare: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Iterator[Change]],
) -> Iterator[Change]:
    for name, one in old.items():
        if name in new:
            yield from compare(f"{kind} {name!r}", one, new[name])
        else:
            yield Change(what=f"{kind} {name!r} was removed", compatible=True)
    for name in new:
        if name not in old:
            yield Change(what=f"{kind} {name!r} is new", compatible=True)


def _topic_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = old["schema"], new["schema"]
    # columns that show at the start only are compared then, with what the topic holds
    if before != after and None not in (before, after):
        hint = "its records have the old columns: give the topic another name, or begin a new run"
        yield Change(
            what=f"{name} has columns ({after}), not ({before})", compatible=False, hint=hint
        )
    yield from _other_changes(name, old, new)


def _operator_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    for key in _FIXED:
        if old.get(key) != new[key]:
            hint = "give the operator another name, and it begins anew; or begin a new run"
            yield _differs(f"{name}: {key}", old.get(key), new[key], compatible=False, hint=hint)
    yield from _other_changes(name, old["options"], new["options"])
    yield from _other_changes(name, old, new)


def _other_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Everything else, none of which matters to records that are there."""
    for key, value in new.items():
        if key == "code" and old[key] != value:
            yield Change(what=f"{name}: its function changed", compatible=True)
        elif key == "resource_code" and old[key] != value:
            yield Change(what=f"{name}: what opens its resource changed", compatible=True)
        elif key not in (*_FIXED, "schema", "options") and old.get(key) != value:
            yield _differs(f"{name}: {key}", old.get(key), value)


def _differs(
    what: str, old: object, new: object, *, compatible: bool = True, hint: str = ""
) -> Change:
    return Change(what=f"{what} is {new!r}, was {old!r}", compatible=compatible, hint=hint)
