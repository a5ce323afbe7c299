"""Checks a pipeline before anything starts: names, feeds, topics, topology, columns."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from penstock.core.topology import Topology
from penstock.errors import InputError, nearest
from penstock.pipelines.host_declaration import check_hosts
from penstock.pipelines.kinds.kind import Schemas, find_kind
from penstock.pipelines.kinds.schemas import how_to_declare
from penstock.pipelines.operator import Operator
from penstock.pipelines.operator_validation import check_operator, check_signature
from penstock.pipelines.renames import check_declared
from penstock.pipelines.source_location import place_of
from penstock.pipelines.topic_declaration import ERRORS_SCHEMA, DeclaredTopic, errors_topic
from penstock.topics.schema import EVENT, first_difference
from penstock.workloads.pattern import ArrivalName

if TYPE_CHECKING:
    from penstock.pipelines.pipeline import Pipeline

_NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)


# --- single declarations, while the file is read


def check_name(kind: str, name: str) -> None:
    """Raise `InputError` unless a name can be part of file names and command-line options."""
    if not _NAME.fullmatch(name):
        hint = "letters, digits, '_', '-' and '.' make a name, such as tweets-complex"
        raise InputError(kind, f"cannot be called {name!r}", hint)


def check_columns(schema: pa.Schema) -> pa.Schema:
    """Return the schema; `InputError` if it declares `_event`, which every topic has."""
    if EVENT in schema.names:
        raise InputError("schema", f"names {EVENT!r}", "leave it out: every topic has it")
    return schema


def check_new(operator: Operator, others: Mapping[str, Operator]) -> None:
    """Raise `InputError` unless an operator has a new and valid name."""
    if isinstance(operator.function, Operator):
        known = operator.function
        hint = "write a second function that calls the first"
        raise InputError(known.name, "is an operator already", hint, known.where)
    if not _NAME.fullmatch(operator.name):
        hint = "an operator is named after its function: write it with def"
        raise InputError("operator", f"cannot be called {operator.name!r}", hint, operator.where)
    if operator.name in others:
        problem = f"there is an operator of that name already ({others[operator.name].where})"
        hint = "operators are named after their functions: rename one"
        raise InputError(operator.name, problem, hint, operator.where)


# --- the whole pipeline


def check(pipeline: "Pipeline") -> Topology:
    """Return the topology, or raise `InputError` with the first problem."""
    objective_s = pipeline.objective_s
    if objective_s is not None and not 0 < objective_s < float("inf"):
        raise InputError("objective_s", f"must be above 0, got {objective_s}")
    idle_s = pipeline.idle_s
    if idle_s is not None and not 0 < idle_s < float("inf"):
        raise InputError("idle_s", f"must be above 0, got {idle_s}")
    if not pipeline.operators:
        hint = "add a function with @pipeline.batches(reads=..., writes=...)"
        raise InputError(pipeline.name, "has no operators", hint)
    operators = tuple(pipeline.operators.values())
    for operator in operators:
        check_operator(operator)
    check_hosts(pipeline)
    _check_feeds(pipeline)
    fillers = _fillers(pipeline)
    topics = pipeline.topics
    _check_reads(operators, topics)
    _check_filled(pipeline, fillers)
    check_declared(pipeline)
    topology = _topology(operators)
    for operator in operators:
        _check_schemas(operator, topics)
    return topology


def _check_feeds(pipeline: "Pipeline") -> None:
    for feed in pipeline.feeds.values():
        field, where = f"topics.{feed.topic}", place_of(feed.make)
        if feed.topic not in pipeline.declared:
            hint = how_to_declare(feed.topic, pipeline.declared)
            raise InputError(field, "rows are produced, but the topic is not declared", hint, where)
        if feed.arrivals not in (known := get_args(ArrivalName)):
            problem = f"unknown arrival process {feed.arrivals!r}"
            raise InputError(f"{field}.arrivals", problem, nearest(feed.arrivals, known), where)
        if not 0 < feed.share <= 1:
            hint = "topics that share a workload have parts of it that add up to 1"
            problem = f"must be above 0 and at most 1, got {feed.share!r}"
            raise InputError(f"{field}.share", problem, hint, where)
        check_signature(feed.make, field, ("first_id", "due"))


def _fillers(pipeline: "Pipeline") -> dict[str, str]:
    """Return what fills each topic; `InputError` if a topic is filled twice."""
    fillers: dict[str, str] = {}

    def fill(topic: str, filler: str, where: str) -> None:
        if topic in fillers:
            problem = f"is filled by {fillers[topic]} and by {filler}"
            hint = 'write to two topics; an operator can read both: reads=["a", "b"]'
            raise InputError(f"topics.{topic}", problem, hint, where)
        fillers[topic] = filler

    for topic in pipeline.declared.values():
        if topic.external:
            fill(topic.name, "another process (external=True)", "")
    for feed in pipeline.feeds.values():
        name = getattr(feed.make, "__name__", "a function")
        fill(feed.topic, f"{name!r}, which produces it", place_of(feed.make))
    for operator in pipeline.operators.values():
        for name in operator.fills:
            fill(name, f"operator {operator.name!r}", operator.where)
    return fillers


def _check_reads(operators: Iterable[Operator], topics: Mapping[str, DeclaredTopic]) -> None:
    for operator in operators:
        for topic in operator.reads:
            if topic not in topics:
                problem = f"there is no topic {topic!r}"
                hint = nearest(topic, topics)
                raise InputError(f"{operator.name}.reads", problem, hint, operator.where)


def _check_filled(pipeline: "Pipeline", fillers: Mapping[str, str]) -> None:
    for name in pipeline.declared:
        if name not in fillers:
            if slip := get_close_matches(name, fillers.keys() - pipeline.declared, n=1, cutoff=0.8):
                problem = (
                    f"nothing fills this topic, but {slip[0]!r} is filled by {fillers[slip[0]]}"
                )
                raise InputError(f"topics.{name}", problem, "are they meant to be the same?")
            hint = (
                f"let an operator write it, make its rows with @pipeline.produces({name!r}),"
                " or declare it with external=True if another process fills it"
            )
            raise InputError(f"topics.{name}", "nothing fills this topic", hint)


def _topology(operators: Iterable[Operator]) -> Topology:
    writers = {topic: operator.name for operator in operators for topic in operator.fills}
    feeders = {
        operator.name: list(dict.fromkeys(writers[t] for t in operator.reads if t in writers))
        for operator in operators
    }
    try:
        return Topology.of(feeders)
    except InputError as cycle:
        field = cycle.field.replace("upstream", "reads")
        hint = "a pipeline is acyclic: let one of them read or write another topic"
        raise InputError(field, cycle.problem, hint) from None


def _check_schemas(operator: Operator, topics: Mapping[str, DeclaredTopic]) -> None:
    """Check the columns that are known; those of a frame operator are known at the start."""
    known = {name: topic.schema for name, topic in topics.items() if topic.schema is not None}
    try:
        inputs = {topic: known[topic] for topic in operator.reads if topic in known}
        find_kind(operator.kind).check_schemas(operator, inputs, topics)
        _check_side_outputs(operator, known)
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


def _check_side_outputs(operator: Operator, known: Schemas) -> None:
    options = operator.options
    if options.on_error == "dead-letter":
        _check_fits("on_error", errors_topic(operator.name), ERRORS_SCHEMA, known)
    if options.dropped_to is not None:
        inputs = (known[topic] for topic in operator.reads if topic in known)
        _check_fits("dropped_to", options.dropped_to, next(inputs, None), known)


def _check_fits(field: str, topic: str, expected: pa.Schema | None, known: Schemas) -> None:
    if expected is None or topic not in known:
        return
    if differs := first_difference(expected, known[topic]):
        hint = f"do not declare {topic!r}: it is made with the right columns"
        raise InputError(field, f"topic {topic!r} does not fit: {differs}", hint)
