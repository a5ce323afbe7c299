"""Evaluates a predicate on one publication; clients drop false positives with it."""

from collections.abc import Mapping
from typing import Any

from penstock.pubsub.language.comparison_sets import satisfying_set
from penstock.pubsub.language.predicate import And, Not, Or, Predicate
from penstock.pubsub.language.values import read_key


def is_match(predicate: Predicate, publication: Mapping[str, Any]) -> bool:
    """Whether a predicate is true for a JSON object.

    >>> from penstock.pubsub.language.parser import parse_predicate
    >>> is_match(parse_predicate("a != 1"), {}), is_match(parse_predicate("NOT a = 1"), {})
    (False, True)
    """
    match predicate:
        case Not():
            return not is_match(predicate.operand, publication)
        case And():
            return all(is_match(operand, publication) for operand in predicate.operands)
        case Or():
            return any(is_match(operand, publication) for operand in predicate.operands)
        case _:
            return read_key(publication, predicate.attribute) in satisfying_set(predicate)
