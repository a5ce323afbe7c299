"""What a matcher builds from its stored subscriptions, and keeps in this process.

Building takes long for plain subscriptions, so a few changes are matched beside what was built.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Doubles, Integers, Numbers, byte_lengths
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.kernels.half_spaces import (
    lay_out_tiles,
    point_schema,
    read_doubles,
    vector_size,
)
from penstock.pubsub.kernels.value_columns import value_schema
from penstock.pubsub.language.box_json import decode_boxes
from penstock.pubsub.matcher import AspeMatcher, Matcher, PatchedMatcher, build_plain_matcher
from penstock.state.handle import State

#: So many changes since all was built make it worth building again: a share, and at least some.
_MAX_CHANGED, _MIN_CHANGES = 0.25, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionLayout:
    """How stored subscriptions and publications are read; nothing here is secret."""

    paths: tuple[str, ...]
    is_encrypted: bool
    backend: Backend | None = None

    def build(self, stored: Iterable[pa.RecordBatch]) -> Matcher:
        """Return the matcher of stored subscriptions: columns number and content."""
        rows = list(stored)
        if self.is_encrypted:
            return self._build_encrypted(rows)
        boxes = {
            number: decode_boxes(content)
            for part in rows
            for number, content in zip(
                part["number"].to_pylist(), part["content"].to_pylist(), strict=True
            )
        }
        return build_plain_matcher(boxes, self.paths, self.backend)

    def _build_encrypted(self, rows: list[pa.RecordBatch]) -> Matcher:
        attributes = len(self.paths)
        size = vector_size(attributes)
        numbers = [part["number"].to_numpy().astype(np.uint32) for part in rows]
        tests = [read_doubles(part["content"], size) for part in rows]
        lengths = [byte_lengths(part["content"]) for part in rows]
        counts = np.concatenate([np.empty(0, np.int32), *lengths]) // (8 * 2 * attributes * size)
        owners = np.repeat(np.concatenate([np.empty(0, np.uint32), *numbers]), counts)
        boxes: Doubles = np.concatenate([np.empty((0, size)), *tests])
        boxes = boxes.reshape(-1, 2 * attributes, size)
        return AspeMatcher(spaces=lay_out_tiles(boxes, owners), backend=self.backend)

    def read_publications(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the topic as the matcher compares them."""
        if self.is_encrypted:
            size = vector_size(len(self.paths))
            points = pa.array(read_doubles(rows["vector"], size).ravel())
            column = pa.FixedSizeListArray.from_arrays(points, size)
            return pa.record_batch([column], schema=point_schema(size))
        schema = value_schema(len(self.paths))
        columns = (rows[field.name] for field in schema)
        # a cast looks at every value, also if nothing changes
        fitting = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(fitting, schema=schema)

    def make_sample(self) -> pa.RecordBatch:
        """Return rows of the topic with one publication, which nobody has sent."""
        if self.is_encrypted:
            vector = np.zeros(vector_size(len(self.paths)))
            vector[0] = 1.0
            return pa.record_batch([pa.array([vector.tobytes()])], ["vector"])
        schema = value_schema(len(self.paths))
        values = {pa.uint8(): 0, pa.float64(): 0.0, pa.binary(): None}
        columns = [pa.array([values[field.type]], field.type) for field in schema]
        return pa.record_batch(columns, schema=schema)


def name_versions(rows: pa.RecordBatch) -> pa.Array:
    """Return a name for each subscription: a hash of its number and content."""
    pairs = zip(rows["number"].to_pylist(), rows["content"].to_pylist(), strict=True)
    digests = [blake2b(content, digest_size=8, salt=_pack(number)) for number, content in pairs]
    return pa.array(
        [int.from_bytes(d.digest(), "little", signed=True) for d in digests], pa.int64()
    )


def _pack(number: int) -> bytes:
    return number.to_bytes(8, "little")


@dataclass(slots=True)
class _SliceIndex:
    """What this process has built for a slice."""

    #: All subscriptions of some batch.
    base: Matcher
    numbers: Numbers
    #: Names of the subscriptions with their content; see `name_versions`.
    versions: Integers
    #: The last matcher, and the token of the state that it was built from.
    token: str
    matcher: Matcher


_built: dict[tuple[SubscriptionLayout, int], _SliceIndex] = {}


def find_matcher(layout: SubscriptionLayout, state: State, *, is_changed: bool) -> Matcher:
    """Return the matcher of a slice; the state is read only if this process has another one.

    A token names the content of a state at the start of a batch, so a slice that moved, or a batch
    that is repeated, cannot find a matcher of other subscriptions. With changes of this batch
    (`is_changed`), the content has no name yet.
    """
    known = _built.get((layout, state.slice))
    if known is not None and known.token == state.token and not is_changed:
        return known.matcher
    rows = list(state.scan())
    versions = np.concatenate([np.empty(0, np.int64), *(part["version"] for part in rows)])
    matcher = None if known is None else _patch(layout, known, rows, versions)
    if known is None or matcher is None:
        matcher = layout.build(rows)
        numbers = [part["number"].to_numpy().astype(np.uint32) for part in rows]
        known = _SliceIndex(
            base=matcher,
            numbers=np.concatenate([np.empty(0, np.uint32), *numbers]),
            versions=versions,
            token="",
            matcher=matcher,
        )
        _built[layout, state.slice] = known
    if not is_changed:
        known.token, known.matcher = state.token, matcher
    return matcher


def _patch(
    layout: SubscriptionLayout, known: _SliceIndex, rows: list[pa.RecordBatch], versions: Integers
) -> Matcher | None:
    """Return the matcher of rows as a change of what was built; None if too much has changed."""
    is_gone = ~np.isin(known.versions, versions)
    is_new = ~np.isin(versions, known.versions)
    changes = np.count_nonzero(is_gone) + np.count_nonzero(is_new)
    if changes > max(_MIN_CHANGES, _MAX_CHANGED * len(known.versions)):
        return None
    base = known.base.without(known.numbers[is_gone].tolist()) if is_gone.any() else known.base
    if not is_new.any():
        return base
    starts = np.cumsum([0, *(len(part) for part in rows)])
    new = [
        part.filter(pa.array(is_new[start : start + len(part)]))
        for part, start in zip(rows, starts, strict=False)
    ]
    return PatchedMatcher(base=base, later=layout.build(new))
