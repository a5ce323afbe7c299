"""Which rows a batch takes and which are given up. Pure.

A batch that is not bounded grows with its backlog, and then nothing is elastic: a change takes
effect with the next batch only. So a batch takes as many rows as k replicas carry in the time
that a batch shall last, by what they carried in the last ones. Where the function is called for
each slice of a state, rows take at least as long as the calls: with fewer, most of a batch
would be calls, the next one would take fewer still, and so on.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.engines.microbatch.batch_record import BatchRecord

#: Rows of each replica in the very first batch, when nothing has been measured.
FIRST_ROWS = 8
#: A batch grows at most by this factor: a few quick rows do not promise as many more.
GROWTH = 16
#: Weight of the last batch in the mean speed.
_NEW = 0.5
#: How fast the speed of a replica that was idle forgets what was measured.
_FORGET = 0.1

#: A range of rows that will not be processed, and why: "expired" or "overflow".
Skip = tuple[int, int, str]


class CallCost(NamedTuple):
    """Seconds of calls by their rows, one call a slice: sums in which the last batches weigh most.

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
        """Rows that take as long as a call does without any; infinite where rows seem to be free.

        They do, too, if all calls had as many; a few more of them will tell.
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
    #: With state: its slices, and what it takes to work on one of them.
    slices: int = 0
    calls: CallCost = CallCost()

    def after(self, record: BatchRecord) -> "Throughput":
        """What is known when one more batch is done."""
        worked = [task for task in record.tasks if task.rows_in and task.busy_s > 0]
        if not worked:
            return self
        rows = sum(task.rows_in for task in worked)
        longest_s = max(task.busy_s for task in worked)
        # where rows are fewer than replicas, those without any tell nothing
        taking = len(record.tasks) if rows >= len(record.tasks) else len(worked)
        now = rows / taking / longest_s
        # small batches show their fixed costs; a speed that doubles is the better knowledge
        before = self.mean if self.mean is not None and now <= 2 * self.mean else now
        mean = before * (1 - _NEW) + now * _NEW
        called = [
            (rows, seconds)
            for task in worked
            for rows, seconds in zip(task.counts, task.loads, strict=bool(task.counts))
            if rows
        ]
        return Throughput(
            mean=mean,
            last_rows=rows / len(record.tasks),
            replicas=self._each(record),
            slices=sum(len(task.slices) for task in record.tasks),
            calls=self.calls.after(called) if called else self.calls,
        )

    def _each(self, record: BatchRecord) -> tuple[float | None, ...]:
        mean = self.mean
        each: list[float | None] = []
        for index, task in enumerate(record.tasks):
            before = self.replicas[index] if index < len(self.replicas) else None
            if task.rows_in and task.busy_s > 0:
                now = task.rows_in / task.busy_s
                each.append(now if before is None else before * (1 - _NEW) + now * _NEW)
            elif before is not None and mean is not None:
                each.append(before * (1 - _FORGET) + mean * _FORGET)
            else:
                each.append(before)
        return tuple(each)

    def limit(self, replicas: int, batch_s: float) -> int:
        """Rows that a batch of so many replicas may take."""
        if self.mean is None:
            return FIRST_ROWS * replicas
        most = max(self.last_rows, FIRST_ROWS) * GROWTH
        # beyond what is known to be carried only step by step: each one tells more
        worth_calling = min(self.calls.rows_of_one * self.slices / replicas, 2 * self.last_rows)
        rows = max(count_full_rows(self.mean, batch_s), worth_calling)
        return math.ceil(min(rows, most)) * replicas


def count_full_rows(speed: float, batch_s: float) -> int:
    """Rows of one replica in a full batch; rather one too many, since a batch has fixed costs."""
    return max(1, math.ceil(round(speed * batch_s, 6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One topic as its reader finds it: rows [start, end) wait, some of them given up already."""

    start: int
    end: int
    #: Up to where the size of the queue was looked at before.
    seen: int = 0
    skips: tuple[Skip, ...] = ()

    def overflowed(self, queue_size: int | None) -> "Waiting":
        """Give up what came in since the last look and does not fit into the queue."""
        if queue_size is None:
            return replace(self, seen=self.end)
        kept = sum(high - low for low, high, _ in self.skips if low >= self.start)
        waiting_before = max(0, max(self.seen, self.start) - self.start - kept)
        begin = max(self.seen, self.start) + max(0, queue_size - waiting_before)
        if begin >= self.end:
            return replace(self, seen=self.end)
        return replace(self, seen=self.end, skips=_merge(self.skips, (begin, self.end, "overflow")))

    def expired(self, until: int) -> "Waiting":
        """Give up what was written before offset `until`, which is too old."""
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

    def end_after(self, rows: int) -> int:
        """The offset behind so many live rows, and behind what is skipped right after them."""
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
    """Count what is given up, by cause."""
    counts: dict[str, int] = {}
    for ranges in skips.values():
        for low, high, cause in ranges:
            counts[cause] = counts.get(cause, 0) + high - low
    return counts
