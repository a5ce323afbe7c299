"""Checks a single operator: its function, the topics that it reads, its options."""

import inspect
import math
from collections.abc import Callable
from typing import Any, get_args

from penstock.errors import InputError, nearest
from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.operator import OnError, Operator, Options
from penstock.pipelines.source_location import place_of

_GROUPINGS = ("even", "load", "key:COLUMN")


def check_operator(operator: Operator) -> None:
    """Raise `InputError` with the first thing that is wrong."""
    kind = find_kind(operator.kind)
    check_signature(operator.function, operator.name, kind.arguments(operator))
    try:
        kind.check(operator)
        _check_reads(operator)
        _check_replicas(operator.options)
        _check_grouping(operator.options.grouping)
        _check_queue(operator.options)
        _check_calls(operator.options)
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


def check_signature(function: Callable[..., Any], name: str, arguments: tuple[str, ...]) -> None:
    """Raise `InputError` unless a function can be called with these arguments, and returns."""
    where = place_of(function)
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        hint = "collect the rows and return them at once"
        raise InputError(name, "must return its rows, but yields or awaits", hint, where)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        problem = f"must take ({', '.join(arguments)}), but takes {_signature_text(signature)}"
        raise InputError(name, problem, where=where) from None


def _signature_text(signature: inspect.Signature) -> str:
    """Return the signature without annotations, which can be long."""
    empty = inspect.Parameter.empty
    plain = [each.replace(annotation=empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=empty))


def _check_reads(operator: Operator) -> None:
    reads = operator.reads
    if len(set(reads)) < len(reads):
        raise InputError("reads", f"names a topic twice: {', '.join(reads)}")
    for topic in operator.options.whole_commits:
        if topic not in reads:
            raise InputError("whole_commits", f"{topic!r} is not read", nearest(topic, reads))


def _check_replicas(options: Options) -> None:
    least, start, most = options.min_replicas, options.replicas, options.max_replicas
    for name in ("min_replicas", "replicas", "max_replicas"):
        _check_whole(name, getattr(options, name))
    if not least <= start <= most:
        problem = f"must be from min_replicas {least} to max_replicas {most}, got {start}"
        raise InputError("replicas", problem)


def _check_grouping(grouping: str) -> None:
    if grouping not in ("even", "load") and not grouping.startswith("key:"):
        raise InputError("grouping", f"unknown: {grouping!r}", nearest(grouping, _GROUPINGS))
    if grouping == "key:":
        raise InputError("grouping", "names no column", "such as key:user")


def _check_queue(options: Options) -> None:
    timeout_s, size, limit = options.timeout_s, options.queue_size, options.queue_limit
    if timeout_s is not None and not (timeout_s > 0 and math.isfinite(timeout_s)):
        raise InputError("timeout_s", f"must be above 0, got {timeout_s}")
    for name in ("queue_size", "queue_limit"):
        if getattr(options, name) is not None:
            _check_whole(name, getattr(options, name))
    if size is not None and limit is not None and limit >= size:
        problem = f"must be below queue_size {size}, got {limit}"
        hint = "records beyond queue_size are dropped before operators upstream are held back"
        raise InputError("queue_limit", problem, hint)
    if options.whole_commits and (timeout_s is not None or size is not None):
        hint = "timeout_s and queue_size drop single rows of a commit; leave out one of the two"
        raise InputError("whole_commits", "commits are not whole if rows are dropped", hint)
    if options.dropped_to is not None and timeout_s is None and size is None:
        hint = "records are dropped with timeout_s or queue_size; give one, or leave this out"
        raise InputError("dropped_to", "nothing is ever dropped", hint)


def _check_calls(options: Options) -> None:
    if options.chunk_rows is not None:
        _check_whole("chunk_rows", options.chunk_rows)
    limit_s = options.call_timeout_s
    if limit_s is not None and not (limit_s > 0 and math.isfinite(limit_s)):
        raise InputError("call_timeout_s", f"must be above 0, got {limit_s}")
    if options.on_error not in (known := get_args(OnError)):
        problem = f"unknown: {options.on_error!r}"
        raise InputError("on_error", problem, nearest(str(options.on_error), known))
    resource: object = options.resource
    if resource is not None and not callable(resource):
        problem = f"must be a function that opens it, got {type(resource).__name__}"
        raise InputError("resource", problem, "such as resource=load_model")
    if resource is not None:
        check_signature(resource, "resource", ())


def _check_whole(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(name, f"must be a whole number of at least 1, got {value!r}")
