"""The result of a function as rows of each topic that its operator writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import InputError


def split_outputs(result: Any, topics: Sequence[str]) -> dict[str, Any]:
    """Return what a function returned for each topic; a topic without rows is left out.

    With a single topic, the result is its rows. With several, it is a dictionary of rows by topic.

    >>> split_outputs({"id": [1]}, ["orders"])
    {'orders': {'id': [1]}}
    >>> split_outputs({"large": {"id": [1]}, "small": None}, ["large", "small"])
    {'large': {'id': [1]}}
    """
    if result is None:
        return {}
    if len(topics) == 1:
        return {topics[0]: result}
    if not isinstance(result, Mapping):
        hint = f"such as {{{topics[0]!r}: rows, {topics[1]!r}: rows}}; a topic may be left out"
        problem = f"must be a dictionary of rows by topic, got {type(result).__name__}"
        raise InputError("result", problem, hint)
    for name in result:
        if name not in topics:
            hint = f"return {{{topics[0]!r}: rows, {topics[1]!r}: rows}}; a topic may be left out"
            raise InputError("result", f"{name!r} is no topic that it writes", hint)
    return {name: rows for name, rows in result.items() if rows is not None}
