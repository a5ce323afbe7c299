"""The tree of a predicate: comparisons of attributes, joined by NOT, AND and OR."""

from dataclasses import dataclass
from enum import StrEnum

#: What an attribute is compared with; numbers are IEEE doubles.
Literal = float | str | bool


class Order(StrEnum):
    """How a number is compared."""

    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Exists:
    """The attribute is there, with any value, also null."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Ordering:
    """The attribute is a number on one side of a bound."""

    attribute: str
    order: Order
    bound: float


@dataclass(frozen=True, slots=True)
class Between:
    """The attribute is a number from `low` to `high`; with `is_negated`, one outside."""

    attribute: str
    low: float
    high: float
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """The attribute is one of values of one type; with `is_negated`, another of that type.

    `=` and `!=` are memberships of one value.
    """

    attribute: str
    values: tuple[Literal, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Prefix:
    """The attribute is a text that begins with `prefix`; with `is_negated`, one that does not."""

    attribute: str
    prefix: str
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a predicate."""

    operand: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    """All of these."""

    operands: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of these."""

    operands: tuple["Predicate", ...]


Comparison = Exists | Ordering | Between | Membership | Prefix
Predicate = Comparison | Not | And | Or
