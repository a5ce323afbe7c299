"""Exit points: join the lists of one publication from all slices of the matcher.

A batch has whole commits of the matcher, and so all lists of its publications. If it has not, the
lists wait as state until the others are there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Flags, Integers, byte_offsets
from penstock.state.handle import State
from penstock.topics.schema import EVENT

_DUE = "due"
_KEY = ("publication", "slice")
_STORED = (*_KEY, "numbers", "payload")

Columns = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ExitPoint:
    """The function of operator EP."""

    #: Slices of the matcher: so many lists belong to a publication.
    slices: int

    def __call__(self, lists: pa.RecordBatch, state: State) -> Columns:
        """Return a row for every publication that some subscription matches."""
        rows = lists.select([*_STORED, EVENT])
        waiting = [_read_stored(part) for part in state.scan()]
        known = sum(part.num_rows for part in waiting)
        if waiting:
            rows = pa.concat_batches([*(part.cast(rows.schema) for part in waiting), rows])
        publications = rows["publication"].to_numpy()
        order = np.lexsort((rows["slice"].to_numpy(), publications))
        is_whole = self._find_whole(publications[order])
        is_new = order >= known
        _keep(rows.take(pa.array(order[~is_whole & is_new])), state)
        _remove(rows.take(pa.array(order[is_whole & ~is_new])), state)
        return self._join(rows.take(pa.array(order[is_whole])))

    def _find_whole(self, publications: Integers) -> Flags:
        """Return which rows, sorted by publication, have all lists of their publication."""
        _, places, counts = np.unique(publications, return_inverse=True, return_counts=True)
        return np.asarray(counts[places] == self.slices)

    def _join(self, rows: pa.RecordBatch) -> Columns:
        """Return one row for each publication, from all its rows side by side."""
        first = rows.take(pa.array(np.arange(0, rows.num_rows, self.slices)))
        numbers = rows["numbers"]
        ends = np.ascontiguousarray(byte_offsets(numbers)[:: self.slices])
        data = numbers.buffers()[2] or pa.py_buffer(b"")
        joined = pa.BinaryArray.from_buffers(
            pa.binary(), len(first), [None, pa.py_buffer(ends), data]
        )
        is_match = pa.array(np.diff(ends) > 0)
        return {
            "publication": first["publication"].filter(is_match),
            "numbers": joined.filter(is_match),
            # the lists are sorted by slice, and slice 0 has the payload
            "payload": first["payload"].filter(is_match),
            EVENT: first[EVENT].filter(is_match),
        }


def _keep(rows: pa.RecordBatch, state: State) -> None:
    state.put({**{name: rows[name] for name in _STORED}, _DUE: rows[EVENT]})


def _remove(rows: pa.RecordBatch, state: State) -> None:
    state.delete({name: rows[name] for name in _KEY})


def _read_stored(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [*(rows[name] for name in _STORED), rows[_DUE]]
    return pa.record_batch(columns, [*_STORED, EVENT])
