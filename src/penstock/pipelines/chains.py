"""Finds the chains of a pipeline: neighbouring operators that can run as one query. Pure.

Two neighbours are joined where that changes nothing but speed: no row must be dealt anew between
them, nobody else needs the topic between them, and the second has no rules of its own for its
queue or its replicas.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.operator import Operator, Options
from penstock.pipelines.pipeline import Pipeline

#: Options by which an operator needs a queue in front of it.
_QUEUE = (
    *("grouping", "timeout_s", "queue_size", "dropped_to", "queue_limit"),
    *("call_timeout_s", "whole_commits"),
)
_DEFAULTS = Options()
#: In the description of a run: its chains, if it has any.
CHAINS = "chains"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChain:
    """Operators that run as one query, in order; a single operator is a chain of one."""

    members: tuple[str, ...]
    #: Why no further operator follows.
    end: str


def find_chains(pipeline: Pipeline) -> tuple[OperatorChain, ...]:
    """Return the chains of a checked pipeline, in its order; each operator is in exactly one.

    >>> pipeline = Pipeline("shop")
    >>> for name in ("orders", "parsed", "priced"):
    ...     pipeline.topic(name, "id long")
    >>> @pipeline.batches(reads="orders", writes="parsed")
    ... def parse(batch): ...
    >>> @pipeline.batches(reads="parsed", writes="priced")
    ... def price(batch): ...
    >>> find_chains(pipeline)
    (OperatorChain(members=('parse', 'price'), end='no operator reads priced'),)
    """
    operators = list(pipeline.operators.values())
    readers = _find_readers(operators)
    links = {operator.name: _find_next(pipeline, operator, readers) for operator in operators}
    followers = {follower for follower, _ in links.values() if follower}
    heads = [operator.name for operator in operators if operator.name not in followers]
    return tuple(_follow(head, links) for head in heads)


def _follow(head: str, links: Mapping[str, tuple[str, str]]) -> OperatorChain:
    members = [head]
    while (follower := links[members[-1]][0]) and follower not in members:
        members.append(follower)
    return OperatorChain(members=tuple(members), end=links[members[-1]][1])


def _find_readers(operators: Sequence[Operator]) -> dict[str, list[Operator]]:
    readers: dict[str, list[Operator]] = {}
    for operator in operators:
        for topic in operator.reads:
            readers.setdefault(topic, []).append(operator)
    return readers


def _find_next(
    pipeline: Pipeline, operator: Operator, readers: Mapping[str, Sequence[Operator]]
) -> tuple[str, str]:
    """Return the operator that follows in the chain, or "" and the reason why none does."""
    topic = operator.writes
    if topic is None:
        return "", f"{operator.name} writes outside of the pipeline"
    behind = readers.get(topic, ())
    if not behind:
        return "", f"no operator reads {topic}"
    if len(behind) > 1:
        names = ", ".join(reader.name for reader in behind)
        return "", f"{topic} has several readers: {names}"
    reasons = (
        *_reasons_of_pipeline(pipeline, topic),
        *_reasons_of_first(operator),
        *_reasons_of_next(operator, behind[0]),
    )
    return ("", reasons[0]) if reasons else (behind[0].name, "")


def _reasons_of_pipeline(pipeline: Pipeline, topic: str) -> Iterator[str]:
    if not pipeline.chain:
        yield "the pipeline forbids chains"
    if pipeline.hosts is not None:
        yield "hosts carry the slices of this pipeline"
    declared = pipeline.declared.get(topic)
    if declared is not None and declared.keep != "read":
        yield f"rows of {topic} are kept: {declared.keep}"


def _reasons_of_first(operator: Operator) -> Iterator[str]:
    if not find_kind(operator.kind).leads_chains:
        yield f"{operator.name} is of kind {operator.kind}"
    if not operator.options.chain:
        yield f"{operator.name} forbids chains"
    if operator.extra_outputs:
        yield f"{operator.name} writes several topics"


def _reasons_of_next(before: Operator, operator: Operator) -> Iterator[str]:
    name, options, kind = operator.name, operator.options, find_kind(operator.kind)
    if kind.deals_by_key:
        yield f"rows are dealt anew for {name}, by key"
    elif not kind.follows_in_chains:
        yield f"{name} is of kind {operator.kind}"
    if not options.chain:
        yield f"{name} forbids chains"
    if len(operator.reads) > 1:
        yield f"{name} reads several topics"
    for option in _QUEUE:
        if getattr(options, option) != getattr(_DEFAULTS, option):
            yield f"{name} has {option}"
    bounds = _bounds_of(options)
    if bounds not in (_bounds_of(_DEFAULTS), _bounds_of(before.options)):
        yield f"{name} has bounds of its replicas: {options.min_replicas} to {options.max_replicas}"
    if options.on_error != before.options.on_error:
        yield f"{before.name} and {name} differ in on_error"


def _bounds_of(options: Options) -> tuple[int, int, int]:
    return options.min_replicas, options.replicas, options.max_replicas


def describe_chains(joined: Pipeline) -> list[dict[str, Any]]:
    """Write the chains of a pipeline that was joined as JSON; nothing for any other one."""
    heads = {name: op for name, op in joined.operators.items() if op.members}
    return [
        {"members": [*chain.members], "end": chain.end}
        for chain in find_chains(joined.origin)
        if chain.members[0] in heads
    ]


def join_described(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of a run with each of its chains as one operator.

    >>> first = {"reads": ["a"], "writes": "b"}
    >>> second = {"reads": ["b"], "writes": "c"}
    >>> run = {"operators": {"f": first, "s": second}, "chains": [{"members": ["f", "s"]}]}
    >>> join_described(run)["operators"]
    {'f': {'reads': ['a'], 'writes': 'c', 'outputs': ['c']}}
    """
    operators = dict(description["operators"])
    for chain in description.get(CHAINS, ()):
        head, *followers = chain["members"]
        last = operators[followers[-1]]
        outputs = last.get("outputs", [last["writes"]])
        operators[head] = {**operators[head], "writes": last["writes"], "outputs": outputs}
        for name in followers:
            del operators[name]
    return {**description, "operators": operators}
