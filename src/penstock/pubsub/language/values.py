"""One order of all values that an attribute can have, so that every comparison is a range.

missing < other (null, arrays, objects) < FALSE < TRUE < numbers < texts
"""

import math
from collections.abc import Mapping
from typing import Any

#: A value, or a bound between values: the rank of its type, then the value. Python compares
#: tuples element by element; a rank alone is below all values of its type.
Key = tuple[Any, ...]

MISSING: Key = (0,)
OTHER: Key = (1,)
BOOLEANS: Key = (2,)
NUMBERS: Key = (3,)
TEXTS: Key = (4,)
END: Key = (5,)
_MAX_CHAR = chr(0x10FFFF)


def read_key(publication: Mapping[str, Any], path: str) -> Key:
    """Return the key of the attribute at a dotted path.

    >>> read_key({"order": {"price": 2}}, "order.price"), read_key({}, "order.price")
    ((3, 2.0), (0,))
    """
    value: Any = publication
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value_key(value)


def value_key(value: object) -> Key:
    """Return the key of a JSON value; numbers that are no finite double are `OTHER`."""
    if isinstance(value, bool):
        return (2, float(value))
    if isinstance(value, str):
        return (4, value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return OTHER
        return (3, number) if math.isfinite(number) else OTHER
    return OTHER


def next_key(key: Key) -> Key:
    """Return the smallest key above a boolean, a number or a text.

    >>> next_key((3, 1.0)), next_key((4, "ab"))
    ((3, 1.0000000000000002), (4, 'ab\\x00'))
    """
    rank, value = key
    if isinstance(value, str):
        return (rank, value + "\0")
    return (rank, math.nextafter(value, math.inf))


def prefix_end(prefix: str) -> Key:
    """Return the smallest key above all texts that begin with a prefix.

    >>> prefix_end("ab"), prefix_end("")
    ((4, 'ac'), (5,))
    """
    kept = prefix.rstrip(_MAX_CHAR)
    return (4, kept[:-1] + chr(ord(kept[-1]) + 1)) if kept else END
