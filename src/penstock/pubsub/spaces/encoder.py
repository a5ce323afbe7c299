"""What every scheme offers to clients: it encodes publications and subscriptions."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from penstock.errors import nearest
from penstock.pubsub.language.boxes import Box, compile_boxes
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.tokens import TokenKind, split_tokens
from penstock.pubsub.spaces.space import Space

Boxes_co = TypeVar("Boxes_co", covariant=True)
Publication = Mapping[str, Any]


class Encoder(Protocol, Generic[Boxes_co]):
    """Encodes for the matcher of the same scheme; an encrypted one holds the key."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of encoded publications."""

    def encode_publications(self, publications: Sequence[Publication]) -> pa.RecordBatch:
        """Return one row per publication."""

    def encode_subscription(self, text: str) -> Boxes_co:
        """Return the boxes of a predicate."""


def compile_for_space(text: str, space: Space) -> tuple[Box, ...]:
    """Compile a predicate; it must be about attributes of the space and able to match."""
    boxes = compile_boxes(text)
    for token in split_tokens(text):
        if token.kind is TokenKind.NAME and token.value not in space.attributes:
            problem = f"attribute '{token.value}' is not declared in this space"
            hint = nearest(token.value, space.attributes)
            raise PredicateError(text, token.position, problem, hint)
    check_can_match(text, boxes)
    return boxes


def check_can_match(text: str, boxes: Sequence[object]) -> None:
    """Refuse a predicate without boxes."""
    if not boxes:
        raise PredicateError(text, 0, "can never match a publication of this space")
