"""The set of values that satisfies a comparison."""

from functools import singledispatch

from penstock.pubsub.language.predicate import (
    Between,
    Comparison,
    Exists,
    Literal,
    Membership,
    Order,
    Ordering,
    Prefix,
)
from penstock.pubsub.language.value_set import ValueSet, make_set
from penstock.pubsub.language.values import (
    BOOLEANS,
    END,
    NUMBERS,
    OTHER,
    TEXTS,
    Key,
    next_key,
    prefix_end,
    value_key,
)

_NUMBERS = ValueSet(((NUMBERS, TEXTS),))
_TEXTS = ValueSet(((TEXTS, END),))
_BOOLEANS = ValueSet(((BOOLEANS, NUMBERS),))


@singledispatch
def satisfying_set(comparison: Comparison) -> ValueSet:
    """Return the values for which a comparison is true.

    A negated comparison, such as `!=`, is true for the other values of the same type, and so is
    false for a missing attribute.
    """
    raise TypeError(f"no comparison: {comparison!r}")


@satisfying_set.register
def _exists(_comparison: Exists) -> ValueSet:
    return ValueSet(((OTHER, END),))


@satisfying_set.register
def _ordering(comparison: Ordering) -> ValueSet:
    bound: Key = (3, comparison.bound)
    match comparison.order:
        case Order.LESS:
            return make_set([(NUMBERS, bound)])
        case Order.AT_MOST:
            return make_set([(NUMBERS, next_key(bound))])
        case Order.GREATER:
            return make_set([(next_key(bound), TEXTS)])
        case Order.AT_LEAST:
            return make_set([(bound, TEXTS)])


@satisfying_set.register
def _between(comparison: Between) -> ValueSet:
    inside = make_set([((3, comparison.low), next_key((3, comparison.high)))])
    return ~inside & _NUMBERS if comparison.is_negated else inside


@satisfying_set.register
def _membership(comparison: Membership) -> ValueSet:
    keys = [value_key(value) for value in comparison.values]
    members = make_set((key, next_key(key)) for key in keys)
    return ~members & _type_set(comparison.values[0]) if comparison.is_negated else members


@satisfying_set.register
def _prefix(comparison: Prefix) -> ValueSet:
    inside = make_set([((4, comparison.prefix), prefix_end(comparison.prefix))])
    return ~inside & _TEXTS if comparison.is_negated else inside


def _type_set(value: Literal) -> ValueSet:
    if isinstance(value, bool):
        return _BOOLEANS
    return _TEXTS if isinstance(value, str) else _NUMBERS
