"""A ready function with state that also asks a service, and waits for its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.demos.services.service import EmulatedService
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.state.handle import State


def served(ready: Ready, service: EmulatedService, operator: str, ids: str = "id") -> "WithService":
    """Let the rows of a ready function take their service times; `ids` is the column of numbers.

    The rows of a slice wait one after the other, so a slice with many rows takes long: that a
    key is hot can be seen, as it could if the work itself were heavy.
    """
    return WithService(
        by=ready.by, time=ready.time, ready=ready, service=service, operator=operator, ids=ids
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithService(Ready):
    """See `served`."""

    ready: Ready
    service: EmulatedService
    operator: str
    ids: str

    def __call__(self, given: pa.RecordBatch, state: State) -> Any:
        """Do the work for one slice, and wait for the rest."""
        with self.service.lasting(self.operator, given.column(self.ids)):
            return self.ready(given, state)

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Say what the function keeps and gives."""
        return self.ready.shape(inputs)

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Name the columns that decide on the slice of a row, by input."""
        return self.ready.keys(inputs)

    @property
    def forgets(self) -> bool:
        """Whether the function forgets by itself what is closed."""
        return self.ready.forgets
