"""One entry of the reference of the Python API: a function, a class, a type, or a table."""

import dataclasses
import enum
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, is_typeddict

from scripts.reference.markdown import code, docstring_text, first_sentence, join_parts, table
from scripts.reference.source_text import (
    Field,
    alias_comment,
    base_names,
    commented_attributes,
    declared_fields,
    signature,
)


class Entry(NamedTuple):
    """A name on the page, what it names, and the members that are left out."""

    name: str
    thing: Any
    hidden: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """The heading; classes and functions never have the same one."""
        return f"class `{self.name}`" if inspect.isclass(self.thing) else f"`{self.name}`"

    @property
    def anchor(self) -> str:
        """The anchor of the heading."""
        return self.title.lower().replace("`", "").replace(" ", "-").replace(".", "")

    @property
    def summary(self) -> str:
        """One sentence."""
        if isinstance(self.thing, str):
            return "the version of the package"
        if inspect.ismodule(self.thing):
            return first_sentence(self.thing.__doc__ or "")
        if not callable(self.thing) or not self.thing.__doc__ or _is_alias(self.thing):
            return _alias(self)[1].rstrip(".")
        return first_sentence(self.thing.__doc__)

    def text(self) -> str:
        """Return the entry with its heading."""
        return join_parts([f"### {self.title}", *self._parts()])

    def _parts(self) -> Iterator[str]:
        thing = self.thing
        if isinstance(thing, str):
            yield "The version of the package, a text."
        elif inspect.ismodule(thing):
            yield from _module_parts(self)
        elif inspect.isclass(thing) and issubclass(thing, enum.Enum):
            yield docstring_text(thing.__doc__)
            yield table(
                ("name", "value", "meaning"),
                ((f"`{item.name}`", f"`{item.value}`", item.sentence) for item in thing),
            )
        elif is_typeddict(thing):
            yield docstring_text(thing.__doc__)
            yield fields_table(option_fields(thing), with_defaults=False)
        elif inspect.isclass(thing):
            yield from _class_parts(self)
        elif inspect.isfunction(thing):
            yield code(signature(self.name, thing))
            yield docstring_text(thing.__doc__)
        else:
            definition, comment = _alias(self)
            yield f"`{definition}`: {comment}"


def option_fields(options: Any) -> list[Field]:
    """Return the options of a dictionary type and of the ones that it extends."""
    module = sys.modules[options.__module__]
    bases = [getattr(module, name, None) for name in base_names(options)]
    inherited = (item for base in bases if is_typeddict(base) for item in option_fields(base))
    return [*inherited, *declared_fields(options)]


def fields_table(fields: list[Field], *, with_defaults: bool = True) -> str:
    """Return fields with their types, defaults and comments."""
    if not with_defaults:
        return table(
            ("name", "type", "meaning"), ((f"`{f.name}`", f"`{f.type}`", f.comment) for f in fields)
        )
    return table(
        ("name", "type", "default", "meaning"),
        (
            (f"`{f.name}`", f"`{f.type}`", f"`{f.default}`" if f.default else "", f.comment)
            for f in fields
        ),
    )


def _module_parts(entry: Entry) -> Iterator[str]:
    yield docstring_text(entry.thing.__doc__)
    for name in entry.thing.__all__:
        function = getattr(entry.thing, name)
        yield f"#### `{entry.name}.{name}`"
        yield code(signature(f"{entry.name}.{name}", function))
        yield docstring_text(function.__doc__)


def _class_parts(entry: Entry) -> Iterator[str]:
    cls = entry.thing
    members = {name: value for name, value in _members(cls).items() if name not in entry.hidden}
    if dataclasses.is_dataclass(cls):
        yield docstring_text(cls.__doc__)
        fields = [
            item
            for base in reversed(cls.__mro__)
            if dataclasses.is_dataclass(base)
            for item in declared_fields(base)
        ]
        yield fields_table([item for item in fields if item.name not in entry.hidden])
    else:
        if "__init__" not in entry.hidden and not issubclass(cls, Exception):
            yield code(signature(entry.name, vars(cls)["__init__"]))
        yield docstring_text(cls.__doc__)
    attributes = [] if dataclasses.is_dataclass(cls) else list(commented_attributes(cls))
    properties = {
        name: value.fget for name, value in members.items() if isinstance(value, property)
    }
    yield table(
        ("attribute", "meaning"),
        [
            *((f"`{name}`", comment) for name, comment in attributes if name not in entry.hidden),
            *(
                (f"`{name}`", " ".join(docstring_text(get.__doc__).split()))
                for name, get in properties.items()
            ),
        ],
    )
    for name, member in members.items():
        if not isinstance(member, property):
            yield from _method_parts(entry.name, name, member)


def _method_parts(owner: str, name: str, member: Any) -> Iterator[str]:
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    yield f"#### `{owner}.{name}`"
    yield code(signature(name, function))
    yield docstring_text(function.__doc__)


def _members(cls: type) -> Mapping[str, Any]:
    """Return the public methods and properties of a class, then those of its bases."""
    members: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "penstock":
            continue
        for name, value in vars(base).items():
            is_member = isinstance(value, property | classmethod | staticmethod | Callable)
            if is_member and not name.startswith("_") and not inspect.isclass(value):
                members.setdefault(name, value)
    return members


def _is_alias(thing: Any) -> bool:
    return not inspect.isclass(thing) and not inspect.isfunction(thing)


def _alias(entry: Entry) -> tuple[str, str]:
    from penstock import _MODULE_OF  # noqa: PLC0415  (only the page asks where a name is defined)

    return alias_comment(sys.modules[f"penstock.{_MODULE_OF[entry.name]}"], entry.name)
