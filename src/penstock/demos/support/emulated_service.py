"""Emulated services: operators wait as for a model server or a database.

A record takes the time drawn for its id, which includes the real work. A waiting replica counts as
busy but leaves the core to others, so two cores can run fifteen busy replicas.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.params import Params, param
from penstock.pipelines import record_draws as draws
from penstock.pipelines.cpu_clock import minimum_duration
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.state.handle import State

#: Rows per call of an operator that waits: few, so that their times vary visibly.
CHUNK_ROWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedService(Params):
    """Lognormal service times with a mean and an scv; a mean of 0 disables waiting."""

    service_s: float = param(0.0, "mean service time of a record", unit="s", low=0)
    scv: float = param(0.1, "variance / mean² of service times", low=0)

    @property
    def chunk_rows(self) -> int | None:
        """Rows per call of the operator: few if it waits, otherwise no limit."""
        return CHUNK_ROWS if self.service_s else None

    def times(self, operator: str, ids: pa.Array) -> draws.Floats:
        """Return the service time of each record at an operator, in seconds."""
        return draws.lognormal(ids.to_numpy(), f"{operator}, service", self.service_s, self.scv)

    def emulate(
        self,
        operator: str,
        ids: pa.Array,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> AbstractContextManager[None]:
        """Let the work in a `with` block take the service times of its records."""
        total_s = float(self.times(operator, ids).sum()) if self.service_s else 0.0
        return minimum_duration(total_s, sleep, clock)


def with_service(
    ready: Ready, service: EmulatedService, operator: str, ids: str = "id"
) -> "WithService":
    """Give the rows of a stateful function service times; `ids` names the column of record ids.

    The rows of a slice wait one after the other, so a slice with many rows takes long. A hot key
    is visible, as it would be with real computation.
    """
    return WithService(
        by=ready.by, time=ready.time, ready=ready, service=service, operator=operator, ids=ids
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithService(Ready):
    """See `with_service`."""

    ready: Ready
    service: EmulatedService
    operator: str
    ids: str

    def __call__(self, given: pa.RecordBatch, state: State) -> Any:
        """Process one slice, and wait until its rows have taken their service times."""
        with self.service.emulate(self.operator, given.column(self.ids)):
            return self.ready(given, state)

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        return self.ready.shape(inputs)

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the key columns of each input."""
        return self.ready.keys(inputs)

    @property
    def forgets(self) -> bool:
        """Whether the function deletes closed state by itself."""
        return self.ready.forgets
