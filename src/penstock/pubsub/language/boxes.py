"""Compiles a predicate to boxes: its disjunctive normal form, a set of values per attribute."""

from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.pubsub.language.comparison_sets import satisfying_set
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.language.predicate import And, Not, Or, Predicate
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.value_set import EVERYTHING, ValueSet
from penstock.pubsub.language.values import read_key

#: A subscription may need this many boxes.
MAX_BOXES = 16

#: Attributes with the set of values that each must have; other attributes may have any.
Box = FrozenDict[str, ValueSet]


class TooManyBoxesError(Exception):
    """A part of a predicate needs more boxes than a subscription may have."""


def compile_boxes(text: str) -> tuple[Box, ...]:
    """Compile the text of a predicate; without boxes it can never match.

    >>> [dict(box) for box in compile_boxes("a >= 1 AND a < 1")]
    []
    >>> len(compile_boxes("a = 1 OR a = 2")), len(compile_boxes("a = 1 OR b = 2"))
    (1, 2)
    """
    try:
        return find_boxes(parse_predicate(text))
    except TooManyBoxesError:
        problem = f"needs more than {MAX_BOXES} boxes"
        hint = "split it into several subscriptions, at an OR"
        raise PredicateError(text, 0, problem, hint) from None


def find_boxes(predicate: Predicate, is_negated: bool = False) -> tuple[Box, ...]:
    """Return boxes that together match what a predicate, or its opposite, matches."""
    match predicate:
        case Not():
            return find_boxes(predicate.operand, not is_negated)
        case And() | Or():
            parts = [find_boxes(operand, is_negated) for operand in predicate.operands]
            # by De Morgan, the opposite of an AND is an OR of opposites
            join = _intersect if isinstance(predicate, And) is not is_negated else _unite
            return reduce(join, parts)
        case _:
            values = satisfying_set(predicate)
            return _simplify([FrozenDict({predicate.attribute: ~values if is_negated else values})])


def is_in_box(box: Box, publication: Mapping[str, Any]) -> bool:
    """Whether every attribute of a publication has a value of the box."""
    return all(read_key(publication, path) in values for path, values in box.items())


def _unite(boxes: tuple[Box, ...], others: tuple[Box, ...]) -> tuple[Box, ...]:
    return _simplify([*boxes, *others])


def _intersect(boxes: tuple[Box, ...], others: tuple[Box, ...]) -> tuple[Box, ...]:
    return _simplify([_intersect_pair(*pair) for pair in product(boxes, others)])


def _intersect_pair(box: Box, other: Box) -> Box:
    shared = {path: values & other[path] for path, values in box.items() if path in other}
    return FrozenDict({**box, **other, **shared})


def _simplify(boxes: list[Box]) -> tuple[Box, ...]:
    """Drop boxes that are empty and merge those that differ in one attribute only."""
    kept = [_drop_unrestricted(box) for box in boxes if all(box[path].ranges for path in box)]
    count = len(kept) + 1
    while len(kept) < count:
        count = len(kept)
        for path in sorted({path for box in kept for path in box}):
            kept = _merge(kept, path)
    if count > MAX_BOXES:
        raise TooManyBoxesError
    return tuple(kept)


def _merge(boxes: list[Box], path: str) -> list[Box]:
    """Merge boxes that differ in one attribute."""
    groups: dict[Box, ValueSet] = {}
    for box in boxes:
        rest = FrozenDict({name: values for name, values in box.items() if name != path})
        values = box.get(path, EVERYTHING)
        groups[rest] = groups[rest] | values if rest in groups else values
    return [_drop_unrestricted(FrozenDict({**rest, path: groups[rest]})) for rest in groups]


def _drop_unrestricted(box: Box) -> Box:
    return FrozenDict({path: values for path, values in box.items() if values != EVERYTHING})
