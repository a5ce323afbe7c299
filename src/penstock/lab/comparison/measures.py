"""Measures of a result: paths into it, and arithmetic over paths.

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
    """Parse a measure; `InputError` unless it consists of paths, numbers and + - * /."""
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
            a, b = _value(left, result), _value(right, result)
            if a is None or b is None or (isinstance(sign, ast.Div) and b == 0):
                return None
            return _SIGNS[type(sign)](a, b)
        case ast.Constant(value):
            return float(value)  # type: ignore[arg-type]
        case _:
            return _find_number(_path(node, ""), result)


def _find_number(path: list[str], result: Mapping[str, Any]) -> float | None:
    value: Any = result
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            raise InputError("measure", f"there is no {'.'.join(path)!r} in a result")
        value = value[key]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InputError("measure", f"{'.'.join(path)!r} is not a number in a result")
    return None if value is None else float(value)
