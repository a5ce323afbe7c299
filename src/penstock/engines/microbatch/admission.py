"""Admission: how many rows a batch takes, and which rows are dropped. Pure.

An unbounded batch grows with its backlog and delays every change, which takes effect with the
next batch. So a batch takes as many rows as k replicas process in the planned time, by the
throughput of the last batches. Where the function is called for each slice of a state, a batch
takes enough rows that they cost as much as the calls. Otherwise calls would fill the batch, the
next batch would take fewer rows, and so on.

Where an operator reads several topics, the cost of a row of each is learnt (`input_costs.py`).
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.dealing import take_open_first
from penstock.engines.microbatch.full_batch import count_full_rows
from penstock.engines.microbatch.input_costs import FIRST_ROWS, GROWTH, InputCosts

#: Weight of the last batch in the mean speed.
_NEW = 0.5
#: Weight of the mean in the speed of a replica that was idle.
_FORGET = 0.1

#: A range of rows that will not be processed, with the cause: "expired" or "overflow".
Skip = tuple[int, int, str]


class CallCost(NamedTuple):
    """The cost of calls by their rows, one call per slice: sums with decaying weights.

    >>> calls = CallCost().after([(rows, 0.01 + 0.002 * rows) for rows in (0, 3, 5, 9)])
    >>> round(calls.rows_of_one, 6)
    5.0
    """

    number: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def after(self, calls: Iterable[tuple[int, float]]) -> "CallCost":
        """Add the calls of one more batch."""
        n, rows, seconds, squares, products = (value * (1 - _NEW) for value in self)
        for r, s in calls:
            n, rows, seconds = n + 1, rows + r, seconds + s
            squares, products = squares + r * r, products + r * s
        return CallCost(n, rows, seconds, squares, products)

    @property
    def rows_of_one(self) -> float:
        """Rows that cost as much as an empty call; infinite if rows seem to cost nothing.

        That is so, too, while all calls have had the same number of rows.
        """
        if not self.number:
            return 0.0
        spread = self.number * self.squares - self.rows * self.rows
        slope = self.number * self.products - self.rows * self.seconds
        if spread <= 1e-9 * self.number * self.squares or slope <= 0:
            return math.inf
        a_row_s = slope / spread
        return max(0.0, (self.seconds / a_row_s - self.rows) / self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Rows/s: of one replica in a batch as a whole, and of each replica by itself."""

    mean: float | None = None
    last_rows: float = 0.0
    replicas: tuple[float | None, ...] = ()
    #: With state: its slices, and the cost of a call for one of them.
    slices: int = 0
    calls: CallCost = CallCost()
    #: With several inputs: the cost of a row of each.
    costs: InputCosts = InputCosts()

    def after(self, record: BatchRecord) -> "Throughput":
        """Return the throughput with one more batch."""
        costs = self.costs.after(record)
        worked = [task for task in record.tasks if task.rows_in and task.busy_s > 0]
        if not worked:
            return replace(self, costs=costs)
        rows = sum(task.rows_in for task in worked)
        longest_s = max(task.busy_s for task in worked)
        # with fewer rows than replicas, idle replicas are not counted
        taking = len(record.tasks) if rows >= len(record.tasks) else len(worked)
        called = [
            (rows, seconds)
            for task in worked
            for rows, seconds in zip(task.counts, task.loads, strict=bool(task.counts))
            if rows
        ]
        return Throughput(
            mean=self._update_mean(rows / taking / longest_s),
            last_rows=rows / len(record.tasks),
            replicas=self._update_replicas(record),
            slices=sum(len(task.slices) for task in record.tasks),
            calls=self.calls.after(called) if called else self.calls,
            costs=costs,
        )

    def after_unrecorded(self, rows: int, replicas: int, seconds: float) -> "Throughput":
        """Return the throughput with one more batch of which only size and length are known."""
        if rows <= 0 or seconds <= 0:
            return self
        mean = self._update_mean(rows / replicas / seconds)
        return replace(self, mean=mean, last_rows=rows / replicas)

    def _update_mean(self, now: float) -> float:
        # small batches mostly measure fixed costs; a speed that doubles replaces the mean
        before = self.mean if self.mean is not None and now <= 2 * self.mean else now
        return before * (1 - _NEW) + now * _NEW

    def _update_replicas(self, record: BatchRecord) -> tuple[float | None, ...]:
        mean = self.mean
        speeds: list[float | None] = []
        for index, task in enumerate(record.tasks):
            before = self.replicas[index] if index < len(self.replicas) else None
            if task.rows_in and task.busy_s > 0:
                now = task.rows_in / task.busy_s
                speeds.append(now if before is None else before * (1 - _NEW) + now * _NEW)
            elif before is not None and mean is not None:
                speeds.append(before * (1 - _FORGET) + mean * _FORGET)
            else:
                speeds.append(before)
        return tuple(speeds)

    def allot(
        self,
        waiting: Mapping[str, int],
        replicas: int,
        batch_s: float,
        open_inputs: Collection[str] = (),
    ) -> dict[str, int]:
        """Return how many waiting rows of each input a batch takes; open inputs come first."""
        if len(waiting) > 1 and self.costs.seconds:
            return self.costs.allot(waiting, replicas, batch_s, open_inputs)
        return take_open_first(waiting, self.limit(replicas, batch_s), open_inputs)

    def limit(self, replicas: int, batch_s: float) -> int:
        """Return the maximum number of rows of a batch, if all rows cost the same."""
        if self.mean is None:
            return FIRST_ROWS * replicas
        max_rows = max(self.last_rows, FIRST_ROWS) * GROWTH
        # beyond measured throughput a batch at most doubles: each batch improves the measure
        worth_calling = min(self.calls.rows_of_one * self.slices / replicas, 2 * self.last_rows)
        rows = max(count_full_rows(self.mean, batch_s), worth_calling)
        return math.ceil(min(rows, max_rows)) * replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRows:
    """The rows [start, end) of a topic that wait for a reader; some are dropped already."""

    start: int
    end: int
    #: The offset up to which the size of the queue was checked before.
    seen: int = 0
    skips: tuple[Skip, ...] = ()

    def drop_overflow(self, queue_size: int | None) -> "WaitingRows":
        """Drop rows that came since the last check and do not fit into the queue."""
        if queue_size is None:
            return replace(self, seen=self.end)
        kept = sum(high - low for low, high, _ in self.skips if low >= self.start)
        waiting_before = max(0, max(self.seen, self.start) - self.start - kept)
        begin = max(self.seen, self.start) + max(0, queue_size - waiting_before)
        if begin >= self.end:
            return replace(self, seen=self.end)
        return replace(self, seen=self.end, skips=_merge(self.skips, (begin, self.end, "overflow")))

    def drop_expired(self, until: int) -> "WaitingRows":
        """Drop rows before offset `until`, which are too old."""
        until = min(until, self.end)
        if until <= self.start:
            return self
        later = tuple(
            (max(low, until), high, cause) for low, high, cause in self.skips if high > until
        )
        dead = tuple(
            (low, min(high, until), cause) for low, high, cause in self.skips if low < until
        )
        fresh: list[Skip] = []
        reached = self.start
        for low, high, _ in dead:
            if low > reached:
                fresh.append((reached, low, "expired"))
            reached = max(reached, high)
        if reached < until:
            fresh.append((reached, until, "expired"))
        return replace(self, skips=tuple(sorted((*dead, *fresh, *later))))

    @property
    def live_rows(self) -> int:
        """Rows that wait and will be processed."""
        skipped = sum(
            min(high, self.end) - max(low, self.start)
            for low, high, _ in self.skips
            if high > self.start and low < self.end
        )
        return self.end - self.start - skipped

    def find_end(self, rows: int) -> int:
        """Return the offset after so many live rows and the dropped rows right behind them."""
        reached = self.start
        for low, high, _ in self.skips:
            if high <= reached:
                continue
            if low - reached > rows:
                break
            rows -= max(0, low - reached)
            reached = max(high, reached)
            if rows <= 0:
                return min(reached, self.end)
        return min(reached + rows, self.end)


def _merge(skips: Sequence[Skip], new: Skip) -> tuple[Skip, ...]:
    if skips and skips[-1][1] == new[0] and skips[-1][2] == new[2]:
        return (*skips[:-1], (skips[-1][0], new[1], new[2]))
    return (*skips, new)


def count_dropped(skips: Mapping[str, Sequence[Skip]]) -> dict[str, int]:
    """Count dropped rows by cause."""
    counts: dict[str, int] = {}
    for ranges in skips.values():
        for low, high, cause in ranges:
            counts[cause] = counts.get(cause, 0) + high - low
    return counts
