"""What only the source text of a class or function has: `#:` comments, annotations as written."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

#: A signature that is longer has one parameter per line.
_MAX_LINE = 96


class Field(NamedTuple):
    """A declared attribute: how it is written, and the comment above it."""

    name: str
    type: str
    default: str
    comment: str


@cache
def _tree(thing: Any) -> tuple[ast.AST, list[str]]:
    source = textwrap.dedent(inspect.getsource(thing))
    return ast.parse(source).body[0], source.splitlines()


def declared_fields(cls: type) -> list[Field]:
    """Return the annotated public attributes in the body of a class, in their order."""
    tree, lines = _tree(cls)
    assert isinstance(tree, ast.ClassDef)
    return [
        Field(
            node.target.id,
            type_text(node.annotation),
            _default(node.value, vars(sys.modules[cls.__module__])),
            comment_above(lines, node.lineno),
        )
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and not node.target.id.startswith("_")
    ]


def base_names(cls: type) -> list[str]:
    """Return the names of the classes that a class extends, as written."""
    tree, _ = _tree(cls)
    assert isinstance(tree, ast.ClassDef)
    return [ast.unparse(base) for base in tree.bases]


def commented_attributes(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the attributes that `__init__` sets below a `#:` comment."""
    if "__init__" not in vars(cls):
        return
    tree, lines = _tree(vars(cls)["__init__"])
    for node in ast.walk(tree):
        comment = comment_above(lines, node.lineno) if isinstance(node, ast.Assign) else ""
        if comment and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield node.targets[0].attr, comment


def alias_comment(module: Any, name: str) -> tuple[str, str]:
    """Return the definition of a type alias in a module, and the comment above it."""
    source = inspect.getsource(module)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.unparse(node.value), comment_above(source.splitlines(), node.lineno)
    raise LookupError(name)


def comment_above(lines: list[str], number: int) -> str:
    """Return the `#:` comment that ends on the line before a line, counted from 1."""
    found: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(found)


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return the signature of a function or method as it is written, without `self`."""
    tree, _ = _tree(inspect.unwrap(function))
    assert isinstance(tree, ast.FunctionDef)
    names = vars(sys.modules[function.__module__])
    parts = [part for part in _parameters(tree.args, names) if part not in ("self", "cls")]
    is_constructor = tree.name == "__init__"
    result = "" if is_constructor or not tree.returns else f" -> {type_text(tree.returns)}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= _MAX_LINE:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def type_text(node: ast.expr | None) -> str:
    """Return an annotation without quotes and module names."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node).replace("'", "")


def _parameters(args: ast.arguments, names: Mapping[str, Any]) -> Iterator[str]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    for arg, default in zip(plain, defaults, strict=True):
        yield _parameter(arg, default, names)
    if args.vararg is not None:
        yield f"*{_parameter(args.vararg, None, names)}"
    elif args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _parameter(arg, default, names)
    if args.kwarg is not None:
        yield f"**{_parameter(args.kwarg, None, names)}"


def _parameter(arg: ast.arg, default: ast.expr | None, names: Mapping[str, Any]) -> str:
    hint = type_text(arg.annotation)
    if default is None:
        return f"{arg.arg}: {hint}" if hint else arg.arg
    return f"{arg.arg}: {hint} = {_value(default, names)}"


def _value(node: ast.expr, names: Mapping[str, Any]) -> str:
    """Return a default as written; a constant by its value."""
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), str | int | float):
        node = ast.Constant(names[node.id])
    return ast.unparse(node).replace("'", '"')


def _default(value: ast.expr | None, names: Mapping[str, Any]) -> str:
    """Return the default of a field; empty if it must be given, or is a private one."""
    if value is None:
        return ""
    text = _value(value, names)
    empty = {"field(default_factory=FrozenDict)": "{}", "field(default_factory=dict)": "{}"}
    if text in empty:
        return empty[text]
    return "" if text.startswith(("field(", "_")) else text
