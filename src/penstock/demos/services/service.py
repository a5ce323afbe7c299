"""Service times that are waited for: what lets two cores run fifteen busy replicas.

An operator that calls a model server or a database spends its time waiting for the answer, and
so do the ready pipelines where they are asked to: a record takes the time drawn for its number,
of which the real work is a part. A replica that waits is as busy as one that computes; it only
leaves the core to others.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.params import Params, param
from penstock.pipelines import record_draws as draws

#: Rows for each call of an operator that waits: few, so that times can be seen to vary.
CHUNK_ROWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedService(Params):
    """How long a record takes: lognormal with a mean and an scv; a mean of 0 waits for nothing."""

    service_s: float = param(0.0, "mean service time of a record", unit="s", low=0)
    scv: float = param(0.1, "variance / mean² of service times", low=0)

    @property
    def chunk_rows(self) -> int | None:
        """Rows for each call of the operator: few if it waits, else as many as there are."""
        return CHUNK_ROWS if self.service_s else None

    def times(self, operator: str, ids: pa.Array) -> draws.Floats:
        """The seconds that each record takes at an operator."""
        return draws.lognormal(ids.to_numpy(), f"{operator}, service", self.service_s, self.scv)

    @contextmanager
    def lasting(
        self,
        operator: str,
        ids: pa.Array,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[None]:
        """Let the work in a `with` block last as long as its records take, waiting for the rest."""
        begun = clock()
        yield
        rest_s = float(self.times(operator, ids).sum()) - (clock() - begun) if self.service_s else 0
        if rest_s > 0:
            sleep(rest_s)
