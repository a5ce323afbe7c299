"""Matchers: keep subscriptions as state and list the matching ones for every publication.

Within a batch all changes of subscriptions come first, then all publications. All slices have the
same ranges of both inputs, so a change takes effect exactly at the first publication of its batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pubsub.matcher import Matcher
from penstock.pubsub.operators.subscription_index import (
    SubscriptionLayout,
    find_matcher,
    name_versions,
)
from penstock.pubsub.operators.topics import (
    ACKS,
    PARTIAL,
    PUBLICATIONS,
    SUBSCRIPTIONS,
    pack_lists,
)
from penstock.state.handle import State
from penstock.topics.schema import EVENT

Columns = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MatchPoint:
    """The function of operator M; it has no key."""

    layout: SubscriptionLayout

    def preload(self) -> None:
        """Compile the kernel, once for all processes that are forked from this one."""
        self.layout.build(()).match(self.layout.read_publications(self.layout.make_sample()))

    def __call__(self, inputs: Mapping[str, pa.RecordBatch], state: State) -> dict[str, Columns]:
        """Return a list for every publication, an empty one too, and an ack for every change."""
        changes, publications = inputs[SUBSCRIPTIONS], inputs[PUBLICATIONS]
        first = state.input_starts[PUBLICATIONS]
        # a call has fixed costs, and most calls have nothing but publications
        acks = {ACKS: self._apply(changes, state, first)} if changes.num_rows else {}
        if not publications.num_rows:
            return acks
        matcher = find_matcher(self.layout, state, is_changed=changes.num_rows > 0)
        return {PARTIAL: self.list_matches(matcher, publications, first, state.slice), **acks}

    def list_matches(
        self, matcher: Matcher, publications: pa.RecordBatch, first: int, slice: int
    ) -> Columns:
        """Return a list for every publication; the first one has the number `first`."""
        lists = matcher.match(self.layout.read_publications(publications))
        count = publications.num_rows
        # the payload travels once
        payload = publications["payload"] if slice == 0 else pa.nulls(count, pa.binary())
        return {
            "publication": pa.array(np.arange(first, first + count)),
            "slice": pa.repeat(pa.scalar(slice, pa.int32()), count),
            "numbers": pack_lists(lists),
            "payload": payload,
            EVENT: publications[EVENT],
        }

    def _apply(self, changes: pa.RecordBatch, state: State, first: int) -> Columns:
        """Store the last change of each subscription; return an ack for every change."""
        numbers = changes["number"].to_numpy()
        # of the reversed rows, the first of each number
        _, places = np.unique(numbers[::-1], return_index=True)
        places = len(numbers) - 1 - places
        is_active = changes["is_active"].to_numpy(zero_copy_only=False)[places]
        added, removed = (changes.take(pa.array(places[mask])) for mask in (is_active, ~is_active))
        columns = {name: added[name] for name in ("number", "content")}
        state.put({**columns, "version": name_versions(added)})
        state.delete({"number": removed["number"]})
        return {
            "number": changes["number"],
            "is_active": changes["is_active"],
            "publication": pa.repeat(pa.scalar(first, pa.int64()), changes.num_rows),
            EVENT: changes[EVENT],
        }
