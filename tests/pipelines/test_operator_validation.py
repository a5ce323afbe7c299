"""What is wrong with one operator."""

from typing import Any

import pytest
from tests.pipelines.factories import operator, same

from penstock.errors import InputError
from penstock.pipelines.operator_validation import check_operator
from penstock.pipelines.pipeline import Pipeline


def no_arguments() -> None: ...


def two(batch: Any, resource: Any) -> Any:
    return batch, resource


def with_default(batch: Any, *, factor: float = 2.0, **rest: Any) -> Any:
    return batch, factor, rest


def yields(batch: Any) -> Any:
    yield batch


async def awaits(batch: Any) -> Any:
    return batch


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ({"min_replicas": 0}, "min_replicas", "at least 1, got 0"),
        ({"max_replicas": 2.5}, "max_replicas", "whole number of at least 1, got 2.5"),
        ({"replicas": True}, "replicas", "whole number"),
        ({"replicas": 9}, "replicas", "from min_replicas 1 to max_replicas 8, got 9"),
        ({"min_replicas": 3, "replicas": 2}, "replicas", "min_replicas 3"),
        ({"min_replicas": 5, "max_replicas": 4, "replicas": 4}, "replicas", "max_replicas 4"),
        ({"grouping": "evn"}, "grouping", "unknown: 'evn'"),
        ({"grouping": "key:"}, "grouping", "names no column"),
        ({"timeout_s": 0}, "timeout_s", "above 0, got 0"),
        ({"timeout_s": float("inf")}, "timeout_s", "above 0, got inf"),
        ({"queue_size": 0}, "queue_size", "at least 1"),
        ({"queue_limit": -1}, "queue_limit", "at least 1"),
        ({"queue_size": 10, "queue_limit": 10}, "queue_limit", "below queue_size 10"),
        ({"dropped_to": "lost"}, "dropped_to", "nothing is ever dropped"),
        ({"chunk_rows": 0}, "chunk_rows", "at least 1"),
        ({"on_error": "retry"}, "on_error", "unknown: 'retry'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        check_operator(operator(same, **options))
    assert wrong.value.field == f"same.{field}"
    assert problem in wrong.value.problem
    assert "factories.py:" in wrong.value.where


@pytest.mark.parametrize(
    "options",
    [
        {"min_replicas": 2, "replicas": 2, "max_replicas": 2},
        {"grouping": "load", "timeout_s": 0.5, "dropped_to": "lost"},
        {"queue_size": 10, "queue_limit": 9, "chunk_rows": 1, "on_error": "dead-letter"},
    ],
)
def test_good_options_pass(options: dict[str, Any]) -> None:
    check_operator(operator(same, **options))


@pytest.mark.parametrize(
    ("function", "resource", "problem"),
    [
        (no_arguments, None, "must take (batch), but takes ()"),
        (two, None, "must take (batch), but takes (batch, resource)"),
        (same, dict, "must take (batch, resource), but takes (batch)"),
        (yields, None, "yields"),
        (awaits, None, "awaits"),
        (two, {"a": 1}, "must be a function that opens it, got dict"),
        (two, same, "must take (), but takes (batch)"),
    ],
)
def test_functions_are_checked(function: Any, resource: Any, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        check_operator(operator(function, resource=resource))
    assert problem in wrong.value.problem


def test_functions_may_take_more_that_has_a_default() -> None:
    check_operator(operator(with_default))
    check_operator(operator(two, resource=dict))


def test_reading_nothing_or_one_topic_twice() -> None:
    with pytest.raises(InputError, match=r"same\.reads: must name a topic"):
        check_operator(Pipeline("p").batches(reads=[], writes="out")(same))
    with pytest.raises(InputError, match=r"same\.reads: names a topic twice: a, a"):
        check_operator(Pipeline("p").batches(reads=["a", "a"], writes="out")(same))
