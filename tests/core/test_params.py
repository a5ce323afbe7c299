"""Parameters: bounds, text, hints."""

from dataclasses import dataclass

import pytest

from penstock.core.params import NOTHING, Params, PerOperator, check_names, param
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Example(Params):
    target: float = param(0.7, "a share", low=0, above=True, high=1)
    count: int = param(3, "a number", low=1)
    mode: str = param("a", "a word", choices=("a", "b"))
    on: bool = param(False, "a switch")
    limit: float | None = param(None, "a limit", unit="s", low=0)
    each: PerOperator = param(NOTHING, "per operator", low=1)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"target": "0.25"}, "target", 0.25),
        ({"count": "4"}, "count", 4),
        ({"count": 4.0}, "count", 4),
        ({"mode": "b"}, "mode", "b"),
        ({"on": "yes"}, "on", True),
        ({"on": False}, "on", False),
        ({"limit": "12"}, "limit", 12.0),
        ({"each": "4"}, "each", {"*": 4.0}),
        ({"each": "map:3, sink:2"}, "each", {"map": 3.0, "sink": 2.0}),
        ({"each": {"a:b": 3}}, "each", {"a:b": 3.0}),
        ({"each": "a:b:3"}, "each", {"a:b": 3.0}),
    ],
)
def test_text_is_read_by_the_field_s_type(given: dict, name: str, value: object) -> None:
    assert getattr(Example.parse(given), name) == value


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"target": "0"}, "must be above 0 and at most 1, got 0"),
        ({"target": "1.01"}, "must be above 0 and at most 1, got 1.01"),
        ({"target": "much"}, "must be a number, got 'much'"),
        ({"target": "nan"}, "must be a finite number, got 'nan'"),
        ({"count": "2.5"}, "must be a whole number, got '2.5'"),
        ({"count": "0"}, "must be at least 1, got 0"),
        ({"mode": "c"}, "must be one of a, b, got c"),
        ({"on": "maybe"}, "must be true or false, got 'maybe'"),
        ({"limit": "-1"}, "must be at least 0, got -1"),
        ({"each": "map:0"}, "must be at least 1, got map:0"),
        ({"each": "map:x"}, "must be a number, or name:number pairs"),
    ],
)
def test_a_wrong_value_is_refused_with_the_bound(given: dict, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        Example.parse(given)
    assert caught.value.field == next(iter(given))
    assert caught.value.problem.startswith(problem)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError) as caught:
        Example.parse({"taget": "1"})
    assert caught.value.hint == "did you mean 'target'?"


def test_typed_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InputError):
        Example(target=float("inf"))


def test_everything_is_described() -> None:
    described = {d.name: d for d in Example.describe()}
    assert described["limit"].type == "float"
    assert described["each"].type == "per operator"
    assert described["target"].spec.bounds == "above 0 and at most 1"


def test_an_operator_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="there is no operator 'mop'"):
        check_names({"*": 1, "mop": 2}, {"map": 1}, "each")
