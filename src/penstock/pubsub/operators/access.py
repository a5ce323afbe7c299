"""Access points: check requests and sort them into changes, publications and refusals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.operators.content import ContentCheck
from penstock.pubsub.operators.topics import (
    MAX_NUMBERS,
    PUBLICATIONS,
    REFUSALS,
    SUBSCRIPTIONS,
    RequestKind,
)
from penstock.state.handle import State
from penstock.topics.schema import EVENT

Columns = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """The function of operator AP; it keeps no state, and no key."""

    check: ContentCheck

    def __call__(self, requests: pa.RecordBatch, _state: State) -> dict[str, Columns]:
        """Return the rows of each topic, in the order of requests."""
        kinds = requests["kind"].to_numpy(zero_copy_only=False)
        is_publication = kinds == RequestKind.PUBLISH
        outputs: dict[str, Columns] = {}
        refusals = []
        # a call has fixed costs, and most calls have nothing but publications
        for topic, mask, sort in (
            (SUBSCRIPTIONS, ~is_publication, self._sort_changes),
            (PUBLICATIONS, is_publication, self._sort_publications),
        ):
            if mask.any():
                outputs[topic], refused = sort(requests.filter(pa.array(mask)))
                refusals.append(refused)
        names = refusals[0] if refusals else ()
        refused = {name: pa.concat_arrays([part[name] for part in refusals]) for name in names}
        return outputs | ({REFUSALS: refused} if refused and len(refused["kind"]) else {})

    def _sort_changes(self, requests: pa.RecordBatch) -> tuple[Columns, dict[str, pa.Array]]:
        rows = zip(
            requests["kind"].to_pylist(),
            requests["number"].to_pylist(),
            requests["content"].to_pylist(),
            strict=True,
        )
        contents: list[bytes | None] = []
        problems: dict[int, str] = {}
        for place, (kind, number, content) in enumerate(rows):
            try:
                contents.append(self._check_change(kind, number, content))
            except InputError as error:
                problems[place] = str(error)
        is_right = np.ones(len(requests), np.bool_)
        is_right[list(problems)] = False
        right = requests.filter(pa.array(is_right))
        is_active = right["kind"].to_numpy(zero_copy_only=False) == RequestKind.SUBSCRIBE
        changes = {
            "number": right["number"],
            "is_active": pa.array(is_active),
            "content": pa.array(contents, pa.binary()),
            EVENT: right[EVENT],
        }
        return changes, _refuse(requests, problems)

    def _check_change(self, kind: int, number: int | None, content: bytes | None) -> bytes | None:
        """Return what the matcher stores."""
        if number is None or not 0 <= number < MAX_NUMBERS:
            raise InputError("number", f"must be from 0 to {MAX_NUMBERS - 1}, got {number}")
        if kind == RequestKind.UNSUBSCRIBE:
            return None
        if kind != RequestKind.SUBSCRIBE:
            raise InputError("kind", f"must be from 0 to 2, got {kind}")
        return self.check.check_subscription(content or b"")

    def _sort_publications(self, requests: pa.RecordBatch) -> tuple[Columns, dict[str, pa.Array]]:
        contents, payloads = (requests[name].fill_null(b"") for name in ("content", "payload"))
        checked = self.check.check_publications(contents, payloads)
        values = dict(zip(checked.values.schema.names, checked.values.columns, strict=True))
        publications = values | {EVENT: requests[EVENT].take(checked.places)}
        return publications, _refuse(requests, checked.problems)


def _refuse(requests: pa.RecordBatch, problems: Mapping[int, str]) -> dict[str, pa.Array]:
    places = sorted(problems)
    refused = requests.take(pa.array(places, pa.int64()))
    return {
        "kind": refused["kind"],
        "number": refused["number"],
        "problem": pa.array([problems[place] for place in places], pa.string()),
        EVENT: refused[EVENT],
    }
