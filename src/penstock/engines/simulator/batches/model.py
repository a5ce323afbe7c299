"""Parameters of the batch-level simulator: overheads of batches, and costs of operators.

Only these times are modelled. The functions that choose the rows of a batch, assign them to tasks
and measure it are the ones that run on Spark.
"""

from dataclasses import dataclass
from math import exp

from penstock.core.params import Params, param
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches(Params):
    """Overheads of micro-batches: a batch takes its slowest task plus overhead."""

    batch_s: float = param(1.0, "time that a batch shall take", unit="s", low=0, above=True)
    gap_s: float = param(0.5, "least time from one plan to the next", unit="s", low=0)
    fixed_s: float = param(0.1, "overhead of a batch (batch floor)", unit="s", low=0)
    per_replica_s: float = param(0.0, "overhead for each of its replicas", unit="s", low=0)
    per_other_s: float = param(
        0.0, "overhead for each other operator in a batch at that time", unit="s", low=0
    )
    between_s: float = param(0.05, "from a commit to the next plan at least", unit="s", low=0)
    poll_s: float = param(
        0.03, "until a source is asked again that had no rows or was early", unit="s", low=0
    )
    look_s: float = param(
        0.05, "from the look at what waits to the plan of a batch with it", unit="s", low=0
    )
    cold: float = param(0.0, "how much more all of this takes when a run begins", low=0)
    cold_s: float = param(
        10.0, "time in which that fades to 37 %: a JVM compiles what it meets", unit="s", low=0.1
    )
    noise: float = param(0.2, "spread of overheads: sigma of a lognormal factor", low=0)
    write_s: float = param(0.05, "producers write this often", unit="s", low=0, above=True)
    buffer_s: float | None = param(
        None,
        "the load's peak for this long fits between two operators; none: unbounded",
        unit="s",
        low=0,
        above=True,
    )

    def slower(self, at_s: float) -> float:
        """Return the factor on overheads at a time after the start: the JVM is still cold."""
        return 1 + self.cold * exp(-at_s / self.cold_s)

    def overhead_s(self, replicas: float, others: float) -> float:
        """Return the mean seconds of a batch in which no task runs."""
        return self.fixed_s + self.per_replica_s * replicas + self.per_other_s * others


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs(Params):
    """Costs of one operator: `call_s` per task, `slice_s` per slice and `row_s` per row.

    Concurrent replicas share the processors: each further replica adds `crowd_s` to a slice.
    """

    row_s: float = param(0.0, "seconds of a replica for a row", unit="s", low=0)
    call_s: float = param(0.0, "seconds of a task besides its rows", unit="s", low=0)
    slice_s: float = param(0.0, "seconds of a slice that has rows, besides them", unit="s", low=0)
    crowd_s: float = param(
        0.0, "how much longer a slice takes for each further replica", unit="s", low=0
    )
    clump: float = param(1.0, "rows of a batch that fall into a slice together", low=1)
    slices: int = param(0, "slices that keys fall into; 0: rows are dealt evenly", low=0)
    chunk_rows: int | None = param(None, "rows of a call; none: those of a commit", low=1)
    noise: float = param(0.0, "spread of whole batches: sigma of a lognormal factor", low=0)
    spread: float = param(0.0, "spread of their tasks: sigma of a lognormal factor", low=0)
    cpu: float = param(1.0, "share of the work in which a processor is used", low=0)
    out_delay_s: float = param(0.0, "event time until a row shows in the output", unit="s", low=0)
    first_rows: int = param(0, "rows that leave nothing behind, at the beginning", low=0)
    new_keys: float = param(
        0.0,
        "keys that a row adds; with some, the last row of a key shows, once it is silent",
        low=0,
    )
    topic: str = param("", "what a source reads, if several read the same")

    def check(self) -> None:
        """Refuse costs of slices without slices, and sessions without a gap."""
        if (self.slice_s or self.crowd_s) and not self.slices:
            raise InputError("slices", "missing: it has seconds for each slice")
        if self.new_keys and not self.out_delay_s:
            raise InputError("out_delay_s", "missing: it says how long a key must be silent")

    def capacity_rate(self, rules: Batches, replicas: int = 1) -> float:
        """Return the rows/s of one replica in full batches, for evenly distributed keys."""
        calls_s = (self.slice_s + self.crowd_s * (replicas - 1)) * self.slices / replicas
        fixed_s = self.call_s + calls_s
        if not self.row_s and not fixed_s:
            return 1e9
        # admission aims at `batch_s`, or at a batch long enough to outweigh the cost of its calls
        work_s = max(rules.batch_s, fixed_s, fixed_s + calls_s)
        rows = max(1.0, (work_s - fixed_s) / self.row_s) if self.row_s else 1e9
        lost_s = rules.overhead_s(replicas, 0) + rules.between_s
        return rows / (rows * self.row_s + fixed_s + lost_s)


def fit_costs(capacity_rate: float, rules: Batches) -> Costs:
    """Return costs with which one replica processes `capacity_rate` rows/s in full batches.

    >>> round(fit_costs(40.0, Batches()).capacity_rate(Batches()), 6)
    40.0
    """
    lost_s = rules.overhead_s(1, 0) + rules.between_s
    row_s = 1 / capacity_rate * rules.batch_s / (rules.batch_s + lost_s)
    if row_s > rules.batch_s:  # a batch of one row
        row_s = max(0.0, 1 / capacity_rate - lost_s)
    return Costs(row_s=row_s)
