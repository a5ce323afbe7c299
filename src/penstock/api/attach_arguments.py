"""Reads the arguments of `attach`; `InputError` names one that is wrong."""

import re
from collections.abc import Iterable
from typing import Any

from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.errors import InputError
from penstock.runs.attached_run import EXECUTORS, RESTART

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|min|minutes?|h|hours?)?\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_bounds(bounds: Any, field: str = "executors") -> tuple[int, int]:
    """Return the fewest and the most; `InputError` if they are not such numbers."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        problem = f"must be the fewest and the most, such as (1, 8), got {bounds!r}"
        raise InputError(field, problem) from None
    if type(low) is not int or type(high) is not int or not 1 <= low <= high:
        raise InputError(field, f"needs 1 <= fewest <= most, got {bounds!r}")
    return low, high


def read_elastics(queries: Any, mode: str) -> list[ElasticQuery]:
    """Return the queries of factories; `InputError` if the mode does not fit to them."""
    given = queries if isinstance(queries, list | tuple) else [queries]
    elastics = [query for query in given if isinstance(query, ElasticQuery)]
    if elastics and len(elastics) < len(given):
        hint = "attach twice, or use penstock.elastic for all of them"
        raise InputError("queries", "are partly from penstock.elastic, partly not", hint)
    if mode == RESTART and not elastics:
        problem = 'mode="restart" needs queries that can be started again'
        raise InputError("queries", problem, "penstock.elastic(lambda spark, k: ...)")
    if elastics and mode == EXECUTORS:
        hint = 'use mode="restart", or "dry-run"'
        raise InputError("mode", "scales executors, and queries are from penstock.elastic", hint)
    if any(query.query is not None for query in elastics):
        raise InputError("queries", "were started by attach before", "call penstock.elastic again")
    return elastics


def read_queries(queries: Any) -> list[Any] | None:
    """Return the given queries; None if none are given, so that all are followed."""
    if queries is None:
        return None
    given = list(queries) if isinstance(queries, Iterable) else [queries]
    for query in given:
        if not hasattr(query, "runId") or not hasattr(query, "recentProgress"):
            problem = f"must be streaming queries, got {type(query).__name__}"
            raise InputError("queries", problem, "a query is what writeStream...start() returns")
    if not given:
        hint = "leave it out to follow all active queries of the session"
        raise InputError("queries", "is empty", hint)
    return given


def read_duration(value: Any, field: str) -> float:
    """Return a time in seconds: a number, or text with a unit.

    >>> [read_duration(value, "freshness") for value in ("30 s", "2 min", "500ms", 5)]
    [30.0, 120.0, 0.5, 5.0]
    """
    match = None if isinstance(value, bool) else _DURATION.fullmatch(str(value))
    if match is None:
        raise InputError(field, f'must be a time such as "30 s", got {value!r}')
    unit = match[2] or "s"
    seconds = float(match[1]) * _UNITS["ms" if unit == "ms" else unit[0]]
    if seconds <= 0:
        raise InputError(field, f"must be above 0, got {value!r}")
    return seconds
