"""Windows that say along with their counts which windows nobody will hear of any more.

Counts of one window come from many slices, and a batch may close many windows. Who puts them
together again must know when it has them all. The order of windows does not tell, but the order
of batches does: a count says up to when all windows were told in the batches before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.totals import N
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP

#: All windows that end by then were told before; null if none was.
COMPLETE = pa.field("complete", TIMESTAMP)


def announcing(ready: Ready) -> "ClosingWindows":
    """Let a function that counts by window also say which windows are complete."""
    return ClosingWindows(by=ready.by, time=ready.time, ready=ready)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingWindows(Ready):
    """See `announcing`."""

    ready: Ready

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Do the work for one slice."""
        told: Any = self.ready(given, state)
        if told is None:
            return None
        before = pa.repeat(pa.scalar(state.before, pa.int64()), len(told[N]))
        return {**told, COMPLETE.name: before.cast(TIMESTAMP)}

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Say what the function keeps and gives, and one column more."""
        shape = self.ready.shape(inputs)
        return replace(shape, output=shape.output.append(COMPLETE))

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Name the columns that decide on the slice of a row, by input."""
        return self.ready.keys(inputs)
