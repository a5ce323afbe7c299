"""Boxes as JSON, for topics and state.

An object for each box, with the ranges of keys of each attribute. Python's JSON keeps every double
and every text exactly, also infinity and half surrogate pairs.
"""

import json
from collections.abc import Sequence

from penstock.core.frozen_dict import FrozenDict
from penstock.pubsub.language.boxes import Box
from penstock.pubsub.language.value_set import ValueSet


def encode_boxes(boxes: Sequence[Box]) -> bytes:
    """Return boxes as JSON.

    >>> from penstock.pubsub.language.boxes import compile_boxes
    >>> encode_boxes(compile_boxes("a >= 2"))
    b'[{"a":[[[3,2.0],[4]]]}]'
    """
    fields = [{path: values.ranges for path, values in box.items()} for box in boxes]
    return json.dumps(fields, separators=(",", ":")).encode("ascii")


def decode_boxes(content: bytes) -> tuple[Box, ...]:
    """Read what `encode_boxes` wrote."""
    return tuple(
        FrozenDict(
            {
                path: ValueSet(tuple((tuple(low), tuple(high)) for low, high in ranges))
                for path, ranges in box.items()
            }
        )
        for box in json.loads(content)
    )
