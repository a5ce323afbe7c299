"""The scheme `plain`: the matcher sees all values and can compare everything."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.pubsub.kernels.value_columns import make_value_columns, value_schema
from penstock.pubsub.language.boxes import Box
from penstock.pubsub.language.values import read_key
from penstock.pubsub.spaces.encoder import Publication, compile_for_space
from penstock.pubsub.spaces.space import Space


@dataclass(frozen=True, slots=True)
class PlainEncoder:
    """Encodes for a plain space; it has no key."""

    space: Space

    @property
    def schema(self) -> pa.Schema:
        """Three columns per attribute: type, number, text."""
        return value_schema(len(self.space.attributes))

    def encode_publications(self, publications: Sequence[Publication]) -> pa.RecordBatch:
        """Return the attributes of the space, without the rest of the publications."""
        columns = [[read_key(p, path) for p in publications] for path in self.space.paths]
        return make_value_columns(columns)

    def encode_subscription(self, text: str) -> tuple[Box, ...]:
        """Return the boxes of a predicate."""
        return compile_for_space(text, self.space)
