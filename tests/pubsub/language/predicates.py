"""Random predicates with an oracle: a text and a Python function that decides independently."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Publication = dict[str, Any]
ABSENT = object()


@dataclass(frozen=True)
class Case:
    """A predicate as text, and what it must answer."""

    text: str
    decide: Callable[[Publication], bool]


def look_up(publication: Any, path: str) -> Any:
    """The value at a dotted path, or `ABSENT`."""
    for name in path.split("."):
        if not isinstance(publication, dict) or name not in publication:
            return ABSENT
        publication = publication[name]
    return publication


def kind_of(value: Any) -> str:
    """The type by which values are compared."""
    if value is ABSENT:
        return "absent"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        is_number = not isinstance(value, float) or math.isfinite(value)
        return "number" if is_number else "other"
    return "text" if isinstance(value, str) else "other"


def compare(path: str, kind: str, test: Callable[[Any], bool]) -> Callable[[Publication], bool]:
    """A comparison: false unless the value has the type."""

    def decide(publication: Publication) -> bool:
        value = look_up(publication, path)
        return kind_of(value) == kind and test(value)

    return decide


def quote(text: str) -> str:
    """A text in quotes."""
    return "'" + text.replace("'", "''") + "'"


PATHS = st.sampled_from(["a", "b", "c.d"])
NUMBERS = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e300])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "b", "é", "it's", "a\U0010ffff"])
ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


@st.composite
def comparisons(draw: st.DrawFn) -> Case:
    """One comparison."""
    path, no = draw(PATHS), draw(st.booleans())
    word = "NOT " if no else ""
    shape = draw(st.sampled_from(["order", "equal", "in", "between", "like", "exists", "boolean"]))
    if shape == "order":
        sign, bound = draw(st.sampled_from(sorted(ORDERS))), draw(NUMBERS)
        return Case(
            f"{path} {sign} {bound!r}", compare(path, "number", lambda v: ORDERS[sign](v, bound))
        )
    if shape == "between":
        low, high = sorted([draw(NUMBERS), draw(NUMBERS)])
        text = f"{path} {word}between {low!r} and {high!r}"
        return Case(text, compare(path, "number", lambda v: (low <= v <= high) is not no))
    if shape == "like":
        prefix = draw(TEXTS)
        text = f"{path} {word}LIKE {quote(prefix + '%')}"
        return Case(text, compare(path, "text", lambda v: v.startswith(prefix) is not no))
    if shape == "exists":
        return Case(f"EXISTS {path}", lambda p: look_up(p, path) is not ABSENT)
    if shape == "boolean":
        flag = draw(st.booleans())
        sign = "<>" if no else "="
        return Case(f"{path} {sign} {flag}", compare(path, "boolean", lambda v: (v is flag) != no))
    kind = draw(st.sampled_from(["number", "text"]))
    values: list[Any] = draw(
        st.lists(NUMBERS if kind == "number" else TEXTS, min_size=1, max_size=4)
    )
    if shape == "equal":
        values = values[:1]
    shown = [repr(v) if kind == "number" else quote(v) for v in values]
    test = compare(path, kind, lambda v: (v in values) is not no)
    if shape == "equal":
        return Case(f"{path} {'!=' if no else '='} {shown[0]}", test)
    return Case(f"{path} {word}IN ({', '.join(shown)})", test)


def _join(parts: list[Case], word: str) -> Case:
    text = f" {word} ".join(f"({part.text})" for part in parts)
    chosen = all if word == "AND" else any
    return Case(text, lambda p: chosen(part.decide(p) for part in parts))


def _negate(part: Case) -> Case:
    return Case(f"not ({part.text})", lambda p: not part.decide(p))


def _extend(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    parts = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        inner.map(_negate),
        parts.map(lambda cases: _join(cases, "AND")),
        parts.map(lambda cases: _join(cases, "OR")),
    )


CASES = st.recursive(comparisons(), _extend, max_leaves=6)
VALUES = st.one_of(
    NUMBERS,
    TEXTS,
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([None, [], [1], {}, {"x": 1}, math.nan, math.inf, 1e299, "abd", "ac", "abzz"]),
)
PUBLICATIONS = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "b": VALUES,
        "c": st.one_of(VALUES, st.fixed_dictionaries({}, optional={"d": VALUES})),
    },
)
