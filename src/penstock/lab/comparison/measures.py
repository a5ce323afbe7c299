"""Figures of a result by name: a path into it, or arithmetic over such paths.

>>> measure("1 - replicas.avg / 32")({"replicas": {"avg": 8.0}})
0.75
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from penstock.errors import InputError

Measure = Callable[[Mapping[str, Any]], float | None]

_SIGNS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@cache
def measure(text: str) -> Measure:
    """Read a measure; `InputError` if it is anything but paths, numbers and + - * /."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise InputError("measure", f"cannot be read: {text!r}") from None
    _check(tree, text)
    return lambda result: _value(tree, result)


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            _check(left, text)
            _check(right, text)
        case ast.Constant(value) if isinstance(value, int | float):
            return
        case ast.Name() | ast.Attribute():
            _path(node, text)
        case _:
            hint = "paths such as latency_s.avg, numbers, and + - * /"
            raise InputError("measure", f"cannot be read: {text!r}", hint)


def _path(node: ast.expr, text: str) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [*_path(node.value, text), node.attr]
    raise InputError("measure", f"cannot be read: {text!r}")


def _value(node: ast.expr, result: Mapping[str, Any]) -> float | None:
    match node:
        case ast.BinOp(left, sign, right):
            one, two = _value(left, result), _value(right, result)
            if one is None or two is None or (isinstance(sign, ast.Div) and two == 0):
                return None
            return _SIGNS[type(sign)](one, two)
        case ast.Constant(value):
            return float(value)  # type: ignore[arg-type]
        case _:
            return _find_number(_path(node, ""), result)


def _find_number(path: list[str], result: Mapping[str, Any]) -> float | None:
    here: Any = result
    for key in path:
        if not isinstance(here, Mapping) or key not in here:
            raise InputError("measure", f"there is no {'.'.join(path)!r} in a result")
        here = here[key]
    if here is not None and (isinstance(here, bool) or not isinstance(here, int | float)):
        raise InputError("measure", f"{'.'.join(path)!r} is not a number in a result")
    return None if here is None else float(here)
