"""Renamed topics and operators, as `was=` declares them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError
from penstock.pipelines.topic_declaration import errors_topic

if TYPE_CHECKING:
    from penstock.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Renames:
    """New names by old ones."""

    topics: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.topics or self.operators)


def check_declared(pipeline: "Pipeline") -> None:
    """Raise `InputError` for old names that are still in use, or are declared twice."""
    _check_names("topic", {name: topic.was for name, topic in pipeline.topics.items()})
    _check_names("operator", {name: op.was for name, op in pipeline.operators.items()})


def _check_names(kind: str, was: Mapping[str, str | None]) -> None:
    claimed: dict[str, str] = {}
    for name, old in was.items():
        if old is None:
            continue
        if old in was:
            problem = f"there is still {kind} {old!r}" if old != name else "is its own name"
            raise InputError(f"{name}.was", problem, "give the name that it had before")
        if old in claimed:
            raise InputError(f"{name}.was", f"{claimed[old]!r} says the same: was={old!r}")
        claimed[old] = name


def find_renames(old: Mapping[str, Any], new: Mapping[str, Any]) -> Renames:
    """Return the names of an old description that a new one changes.

    A rename that an earlier start carried out is ignored.
    """
    operators = _declared(old["operators"], new["operators"])
    topics = _declared(old["topics"], new["topics"])
    for before, now in operators.items():  # the topic for failed rows is named after the operator
        if errors_topic(before) in old["topics"] and errors_topic(now) in new["topics"]:
            topics[errors_topic(before)] = errors_topic(now)
    return Renames(topics=topics, operators=operators)


def _declared(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    return {
        about["was"]: name
        for name, about in new.items()
        if about.get("was") in old and name not in old
    }


def rename(description: Mapping[str, Any], renames: Renames) -> dict[str, Any]:
    """Return a description with the new names."""
    topics = renames.topics
    return {
        **description,
        "topics": rename_keys(description["topics"], topics),
        "produces": rename_keys(description["produces"], topics),
        "operators": {
            renames.operators.get(name, name): _operator(about, topics)
            for name, about in description["operators"].items()
        },
    }


def rename_keys(mapping: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a mapping whose keys have their new names.

    >>> rename_keys({"a": 1, "b": 2}, {"a": "c"})
    {'c': 1, 'b': 2}
    """
    return {names.get(key, key): value for key, value in mapping.items()}


def _operator(about: Mapping[str, Any], topics: Mapping[str, str]) -> dict[str, Any]:
    slicing, options = about.get("slicing"), about["options"]
    dropped_to, outputs = options.get("dropped_to"), about.get("outputs")
    return {
        **about,
        "reads": [topics.get(name, name) for name in about["reads"]],
        "writes": topics.get(about["writes"], about["writes"]),
        **({"outputs": [topics.get(n, n) for n in outputs]} if outputs else {}),
        "options": {**options, "dropped_to": topics.get(dropped_to, dropped_to)},
        "slicing": {**slicing, "keys": rename_keys(slicing["keys"], topics)} if slicing else None,
    }
