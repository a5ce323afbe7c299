"""Parameters of policies, guards and workloads: frozen, documented, bounded, read from text.

A class of parameters is a frozen dataclass that derives from `Params` and declares
each field with `param`, which carries the unit, the bounds and one sentence:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, slots=True, kw_only=True)
... class Example(Params):
...     target: float = param(0.7, "share of CPU to aim for", low=0, above=True, high=1)
>>> Example.parse({"target": "0.9"}).target
0.9
>>> Example(target=1.5)
Traceback (most recent call last):
penstock.errors.InputError: target: must be above 0 and at most 1, got 1.5
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Self, get_type_hints

from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import MAX_SIZE, MIN_SIZE
from penstock.errors import InputError, nearest

#: A number for each operator by name; the name "*" stands for all that are not listed.
PerOperator = Mapping[str, float]

NOTHING: PerOperator = FrozenDict()
#: Words that switch an optional parameter off.
OFF = ("none", "off")


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """Documentation and bounds of one parameter."""

    doc: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    #: The lower bound itself is not allowed.
    above: bool = False
    choices: tuple[str, ...] = ()
    #: A time that a speed-up divides. False: a time that a record takes or may wait.
    is_scaled: bool = True

    @property
    def bounds(self) -> str:
        """The rule in words; empty if every value is allowed."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low = "" if self.low is None else f"{'above' if self.above else 'at least'} {self.low:g}"
        high = "" if self.high is None else f"at most {self.high:g}"
        return " and ".join(part for part in (low, high) if part)

    def allows(self, value: Any) -> bool:
        """Return whether a value is within the rule."""
        if self.choices:
            return value in self.choices
        if isinstance(value, Mapping):
            return all(self.allows(number) for number in value.values())
        if isinstance(value, str | bool) or value is None:
            return True
        if not is_usable(value):
            return False
        if self.low is not None and (value <= self.low if self.above else value < self.low):
            return False
        return self.high is None or value <= self.high


def is_usable(value: Any) -> bool:
    """Return whether the size of a number is 0 or within the bounds of all measures."""
    if isinstance(value, str | bool) or value is None or value == 0:
        return True
    return bool(MIN_SIZE <= abs(value) <= MAX_SIZE)


def param(default: Any, doc: str, **rule: Any) -> Any:
    """Declare a parameter of a policy: its default, one sentence, and its rule.

    A rule is `unit`, `low` and `high` (`above=True`: the lower bound itself is not allowed),
    `choices`, and `is_scaled=False` for a time that a speed-up must not divide.
    """
    return field(default=default, metadata={"spec": ParamSpec(doc, **rule)})


@dataclass(frozen=True, slots=True)
class ParamDescription:
    """One parameter as shown to people."""

    name: str
    type: str
    default: Any
    spec: ParamSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Base of all parameter classes; checks every field against its bounds.

    >>> from dataclasses import dataclass
    >>> from penstock import Params, param
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class MyParams(Params):
    ...     target: float = param(0.7, "share of CPU to aim for", low=0, above=True, high=1)
    >>> MyParams.parse({"target": "0.9"}).target
    0.9
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            spec: ParamSpec = item.metadata["spec"]
            value = getattr(self, item.name)
            if value is None and item.default is None:
                continue
            if not spec.allows(value):
                shown = value if not isinstance(value, Mapping) else format_per_operator(value)
                rule = spec.bounds or "finite"
                if not spec.choices and not isinstance(value, Mapping) and not is_usable(value):
                    rule = f"of a size from {MIN_SIZE:g} to {MAX_SIZE:g}, or 0"
                raise InputError(item.name, f"must be {rule}, got {shown}")
        self.check()

    def check(self) -> None:
        """Refuse values that do not fit together. Subclasses with such a rule override this."""

    @classmethod
    def describe(cls) -> tuple[ParamDescription, ...]:
        """Return every parameter with its type, default and documentation."""
        hints = get_type_hints(cls)
        return tuple(
            ParamDescription(
                item.name, _type_name(hints[item.name]), item.default, item.metadata["spec"]
            )
            for item in fields(cls)
            if item.default is not MISSING
        )

    @classmethod
    def parse(cls, given: Mapping[str, Any], label: str = "parameter") -> Self:
        """Build from text (`{"target": "0.9"}`) or from typed values such as TOML's."""
        hints = get_type_hints(cls)
        known = {item.name: item for item in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                hint = nearest(name, known) or f"there is no {label} to set"
                raise InputError(name, f"unknown {label}", hint)
            if known[name].default is None and str(value).lower() in OFF:
                values[name] = None
                continue
            try:
                values[name] = _read(value, _type_name(hints[name]))
            except ValueError as error:
                problem = f"must be {error}, got {value!r}"
                raise InputError(name, problem) from None
        return cls(**values)

    def but(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed."""
        return replace(self, **changes)


def look_up(values: PerOperator, name: str) -> float | None:
    """Return the number for one operator, falling back on the one for all.

    >>> look_up({"*": 2, "map": 3}, "map"), look_up({"map": 3}, "sink")
    (3, None)
    """
    return values.get(name, values.get("*"))


def check_names(values: PerOperator, operators: Mapping[str, Any], field_name: str) -> None:
    """Refuse a parameter that names an unknown operator."""
    for name in values:
        if name != "*" and name not in operators:
            hint = nearest(name, operators)
            raise InputError(field_name, f"there is no operator {name!r}", hint)


def format_per_operator(values: PerOperator) -> str:
    """Write per-operator numbers as they are read: `4`, or `map:3,sink:2`."""
    return ",".join(f"{v:g}" if k == "*" else f"{k}:{v:g}" for k, v in values.items())


def _type_name(hint: Any) -> str:
    if hint == PerOperator:
        return "per operator"
    return str(getattr(hint, "__name__", hint)).replace(" | None", "")


def _read(value: Any, kind: str) -> Any:
    """Read one value; a `ValueError` says what it must be."""
    if kind == "per operator":
        return _read_per_operator(value)
    if kind == "bool":
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if isinstance(value, bool) or str(value).lower() in words:
            return value if isinstance(value, bool) else words[str(value).lower()]
        raise ValueError("true or false")
    if kind == "int":
        return _read_int(value)
    if kind == "float":
        return _read_float(value)
    return str(value)


def _read_int(value: Any) -> int:
    try:
        number = float(value)
        if isinstance(value, bool) or number != int(number):
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise ValueError("a whole number") from None
    return int(number)


def _read_float(value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
    except (ValueError, TypeError):
        raise ValueError("a number") from None
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _read_per_operator(value: Any) -> PerOperator:
    shape = ValueError("a number, or name:number pairs such as map:3,sink:2")
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif ":" in str(value):
        pairs = [(n, v) for n, _, v in (p.rpartition(":") for p in str(value).split(","))]
    else:
        pairs = [("*", value)]
    try:
        return FrozenDict({str(name).strip(): _read_float(number) for name, number in pairs})
    except ValueError:
        raise shape from None
