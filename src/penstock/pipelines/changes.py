"""Changes between two descriptions of a pipeline, and whether a run can continue with them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.errors import InputError
from penstock.pipelines.description import VERSION
from penstock.pipelines.renames import Renames, find_renames, rename
from penstock.topics.schema import compare_schemas, parse_schema

_FIXED = ("kind", "reads", "writes", "outputs", "slicing")
#: Parts of an operator or a topic that are compared elsewhere, or not at all.
_APART = (*_FIXED, "schema", "options", "was")

Verdict = Literal["compatible", "needs a declaration", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineChange:
    """One difference between two descriptions."""

    what: str
    #: Whether a run can continue with it.
    verdict: Verdict = "compatible"
    #: The consequence, or what to do.
    hint: str = ""
    #: The operator that was removed, if that is the change.
    removed: str = ""

    @property
    def is_compatible(self) -> bool:
        """Whether a run can continue with it as it is."""
        return self.verdict == "compatible"


def find_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[PipelineChange]:
    """Return the changes from one description to another, incompatible ones first."""
    for description in (old, new):
        if description.get("version") != VERSION:
            problem = f"cannot read version {description.get('version')}, only {VERSION}"
            raise InputError("version", problem)
    renames = find_renames(old, new)
    old = rename(old, renames)
    changes = [
        *_whole(old, new),
        *_renamed(renames),
        *_each("topic", old["topics"], new["topics"], _topic_changes),
        *_each("rows of topic", old["produces"], new["produces"], _other_changes),
        *_operators(old, new),
    ]
    return sorted(changes, key=lambda change: change.is_compatible)


def _whole(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[PipelineChange]:
    if old["name"] != new["name"]:
        yield PipelineChange(
            what=f"the pipeline is called {new['name']!r}, not {old['name']!r}",
            verdict="refused",
            hint="this run belongs to another pipeline: begin a new one",
        )
    if old["objective_s"] != new["objective_s"]:
        yield _differs("objective_s", old["objective_s"], new["objective_s"])
    if old.get("hosts") != new.get("hosts"):
        yield _differs("hosts", old.get("hosts"), new.get("hosts"))


def _renamed(renames: Renames) -> Iterator[PipelineChange]:
    for before, now in renames.topics.items():
        yield PipelineChange(what=f"topic {before!r} is now {now!r}", hint="its rows move with it")
    for before, now in renames.operators.items():
        hint = "its offsets and its state move with it"
        yield PipelineChange(what=f"operator {before!r} is now {now!r}", hint=hint)


def _each(
    kind: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    compare: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Iterator[PipelineChange]],
) -> Iterator[PipelineChange]:
    for name, before in old.items():
        if name in new:
            yield from compare(f"{kind} {name!r}", before, new[name])
        else:
            hint = "its rows stay in the run directory" if kind == "topic" else ""
            yield PipelineChange(what=f"{kind} {name!r} was removed", hint=hint)
    for name in new:
        if name not in old:
            yield PipelineChange(what=f"{kind} {name!r} is new")


def _topic_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PipelineChange]:
    # columns that are known only at the start are compared then, with those of the topic
    if None not in (old["schema"], new["schema"]):
        yield from _column_changes(name, old["schema"], new["schema"])
    yield from _other_changes(name, old, new)


def _column_changes(name: str, before: str, after: str) -> Iterator[PipelineChange]:
    if before == after:
        return
    added, difference = compare_schemas(parse_schema(before), parse_schema(after))
    if difference:
        hint = (
            "its rows have the old columns: keep these as they are and in their order, new ones"
            " must be nullable; or give the topic another name, or begin a new run"
        )
        text = f"{name} has columns ({after}), not ({before})"
        yield PipelineChange(what=text, verdict="refused", hint=hint)
    elif added:
        hint = "rows from before have null there"
        yield PipelineChange(what=f"{name} has new columns: {', '.join(added)}", hint=hint)


def _operators(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[PipelineChange]:
    before, after = old["operators"], new["operators"]
    for name, operator in before.items():
        if name in after:
            yield from _operator_changes(f"operator {name!r}", operator, after[name])
        else:
            yield PipelineChange(
                what=f"operator {name!r} was removed",
                verdict="needs a declaration",
                hint=f"--allow-removal {name} drops what it has not read and its state;"
                f" if it has another name now, declare that one with was={name!r}",
                removed=name,
            )
    for name, operator in after.items():
        if name not in before:
            hint = "begins with the oldest rows that its topics still hold"
            hint = hint if operator["reads"] else ""
            yield PipelineChange(what=f"operator {name!r} is new", hint=hint)


def _operator_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PipelineChange]:
    for key in ("kind", "reads", "writes"):
        if old.get(key) != new[key]:
            hint = "give the operator another name, and it begins anew; or begin a new run"
            if key != "kind":
                hint += "; a topic that has another name now is declared with was=OLD_NAME"
            yield _differs(f"{name}: {key}", old.get(key), new[key], verdict="refused", hint=hint)
    yield from _output_changes(name, old, new)
    if old["kind"] == new["kind"]:
        yield from _state_changes(name, old.get("slicing") or {}, new["slicing"] or {})
    yield from _other_changes(name, old["options"], new["options"])
    yield from _other_changes(name, old, new)


def _output_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PipelineChange]:
    """Yield changes of further output topics, which no earlier row depends on."""
    before, after = (about.get("outputs", [])[1:] for about in (old, new))
    for topic in before:
        if topic not in after:
            hint = "its rows stay in the run directory"
            yield PipelineChange(what=f"{name}: no longer writes {topic!r}", hint=hint)
    for topic in after:
        if topic not in before:
            hint = "rows from before are not there"
            yield PipelineChange(what=f"{name}: also writes {topic!r}", hint=hint)


def _state_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PipelineChange]:
    """Yield changes of keys and columns, which the stored state depends on."""
    for key, value in new.items():
        if key in old and old[key] != value:
            hint = (
                "the state that is there was made for the old one: keep it, or give the operator"
                " another name, and it begins with empty state; or begin a new run"
            )
            label = {"state": "columns of its state", "state_key": "key of its state"}.get(key, key)
            yield _differs(f"{name}: {label}", old[key], value, verdict="refused", hint=hint)


def _other_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PipelineChange]:
    """Yield the other changes, which do not affect existing records."""
    for key, value in new.items():
        if key == "code" and old[key] != value:
            yield PipelineChange(what=f"{name}: its function changed")
        elif key == "resource_code" and old[key] != value:
            yield PipelineChange(what=f"{name}: what opens its resource changed")
        elif key not in _APART and old.get(key) != value:
            yield _differs(f"{name}: {key}", old.get(key), value)


def _differs(
    label: str, old: object, new: object, *, verdict: Verdict = "compatible", hint: str = ""
) -> PipelineChange:
    return PipelineChange(what=f"{label} is {new!r}, was {old!r}", verdict=verdict, hint=hint)
