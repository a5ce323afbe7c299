"""A pipeline as JSON, with a digest in place of each function. Version 1.

A run keeps the description of the pipeline it was started with; `pipelines/changes.py` compares
it with the pipeline of a later start.
"""

from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from types import CodeType
from typing import Any

from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.operator import Operator, Options
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.topic_declaration import DeclaredTopic
from penstock.topics.schema import schema_text

VERSION = 1


def describe(pipeline: Pipeline) -> dict[str, Any]:
    """Write a pipeline as JSON."""
    return {
        "version": VERSION,
        "name": pipeline.name,
        "summary": pipeline.summary,
        "objective_s": pipeline.objective_s,
        **({"hosts": pipeline.hosts.describe()} if pipeline.hosts else {}),
        "topics": {topic.name: _topic(topic) for topic in pipeline.topics.values()},
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


def digest(function: Callable[..., Any] | None) -> str:
    """Return a digest of the code of a function, independent of its place in a file.

    Functions that it calls are not included. Empty if it is not written in Python.
    """
    code = getattr(function, "__code__", None)
    return sha256(repr(_code(code)).encode()).hexdigest()[:16] if code else ""


def _topic(topic: DeclaredTopic) -> dict[str, Any]:
    return {
        "schema": None if topic.schema is None else schema_text(topic.schema),
        "keep": topic.keep,
        "external": topic.external,
        **({"was": topic.was} if topic.was else {}),
    }


def _operator(operator: Operator) -> dict[str, Any]:
    resource = operator.options.resource
    name = getattr(resource, "__qualname__", type(resource).__qualname__) if resource else None
    return {
        "kind": operator.kind,
        "reads": list(operator.reads),
        "writes": operator.writes,
        **({"outputs": list(operator.outputs)} if operator.extra_outputs else {}),
        "options": {**_plain(operator.options), "resource": name},
        "slicing": find_kind(operator.kind).describe_state(operator),
        "code": digest(operator.function),
        "resource_code": digest(resource),
        **({"was": operator.was} if operator.was else {}),
    }


def _plain(options: Options) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(options).items() if name != "resource"}
    # options of later versions stay out of descriptions that do not use them
    whole, may_chain = plain.pop("whole_commits"), plain.pop("chain")
    return {
        **plain,
        **({"whole_commits": list(whole)} if whole else {}),
        **({} if may_chain else {"chain": False}),
    }


def _code(code: CodeType) -> tuple[object, ...]:
    constants = tuple(map(_constant, code.co_consts))
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _constant(value: object) -> object:
    if isinstance(value, frozenset):  # its order differs between processes
        return sorted(map(repr, value))
    return _code(value) if isinstance(value, CodeType) else value
