"""Topics of the batch-level simulator: rows are counts per bin of due time, not single rows."""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.engines.microbatch.event_counts import BIN_S, MAX_BINS, Events
from penstock.workloads.arrivals import arrivals
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.workload import Workload

#: Seconds of load that are converted to counts at a time.
_BLOCK_S = 60.0


class BinnedRows:
    """Rows in the order of writing: due times, and the number of rows for each."""

    __slots__ = ("counts", "due", "total")

    def __init__(
        self, due: FloatArray, counts: NDArray[np.int64], total: int | None = None
    ) -> None:
        self.due, self.counts = due, counts
        #: Number of rows.
        self.total = int(counts.sum()) if total is None else total

    def between(self, start: int, end: int) -> "BinnedRows":
        """Return the rows at positions [start, end)."""
        edges = np.concatenate(([0], np.cumsum(self.counts)))
        counts = np.diff(np.clip(edges, start, end))
        return BinnedRows(self.due[counts > 0], counts[counts > 0])

    def events(self) -> Events:
        """Return event counts for a batch record: at most `MAX_BINS` bins of equal width."""
        if not len(self.due):
            return ()
        low, high = float(self.due.min()), float(self.due.max())
        width = max(BIN_S, (high - low) / (MAX_BINS - 1))
        places, counts = np.floor(self.due / width), self.counts
        if (places[1:] < places[:-1]).any():  # several topics
            order = np.argsort(places, kind="stable")
            places, counts = places[order], counts[order]
        firsts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
        counts = np.add.reduceat(counts, firsts)
        return tuple(zip(((places[firsts] + 0.5) * width).tolist(), counts.tolist(), strict=True))


NO_ROWS = BinnedRows(np.empty(0), np.empty(0, dtype=np.int64))


def join_rows(parts: list[BinnedRows]) -> BinnedRows:
    """Concatenate parts."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NO_ROWS
    due, counts = ([part.due for part in parts], [part.counts for part in parts])
    total = sum(part.total for part in parts)
    return BinnedRows(np.concatenate(due), np.concatenate(counts), total)


def whole_rows(
    due: FloatArray, expected: NDArray[np.floating], remainder: float
) -> tuple[BinnedRows, float]:
    """Round expected counts down to whole rows; return them and the remainder to carry over."""
    reached = np.cumsum(expected) + remainder
    whole = np.floor(reached + 1e-9)
    left = float(reached[-1] - whole[-1]) if len(whole) else remainder
    counts = np.diff(whole, prepend=0.0).astype(np.int64)
    return BinnedRows(due[counts > 0], counts[counts > 0]), left


class BinnedTopic:
    """A topic that is read by offset; rows that all readers have passed are deleted."""

    def __init__(self) -> None:
        self.first = self.end = 0
        self._commits: list[BinnedRows] = []
        #: Offset of the first row of each commit.
        self._starts: list[int] = []

    def refresh(self) -> int:
        """Return the end offset; part of the topic interface of `OperatorTracker`."""
        return self.end

    def append(self, rows: BinnedRows) -> None:
        """Append rows as one commit."""
        self._commits.append(rows)
        self._starts.append(self.end)
        self.end += rows.total

    def read(self, start: int, end: int) -> Iterator[BinnedRows]:
        """Yield the rows between two offsets, commit by commit."""
        at = max(0, bisect_right(self._starts, start) - 1)
        while at < len(self._starts) and self._starts[at] < end:
            first, rows = self._starts[at], self._commits[at]
            last = self._starts[at + 1] if at + 1 < len(self._starts) else self.end
            if start <= first and last <= end:
                yield rows
            elif start < last:
                yield rows.between(start - first, end - first)
            at += 1

    def forget(self, before: int) -> None:
        """Delete the commits that end before an offset, in batches of more than 1000."""
        old_commits = bisect_right(self._starts, before) - 1
        if old_commits > 1000:
            del self._commits[:old_commits], self._starts[:old_commits]


def produced_rows(load: Workload, kind: str, seed: int, write_s: float) -> Iterator[BinnedRows]:
    """Yield the rows of each write of a producer: those that became due since the last write."""
    bins_a_write = max(1, round(write_s / BIN_S))
    width = write_s / bins_a_write
    blocks = (
        _even_counts(load, width)
        if kind == "deterministic"
        else _drawn_counts(load, kind, seed, width)
    )
    pending = np.empty(0, dtype=np.int64)
    bins = 0
    for block in blocks:
        pending = np.concatenate((pending, block))
        whole = len(pending) // bins_a_write * bins_a_write
        yield from _writes(pending[:whole], bins_a_write, bins, width)
        bins, pending = bins + whole, pending[whole:]
    yield from _writes(pending, bins_a_write, bins, width)


def _writes(
    counts: NDArray[np.int64], bins_a_write: int, first: int, width: float
) -> Iterator[BinnedRows]:
    """Yield the rows of each write; all are computed at once."""
    kept = np.flatnonzero(counts)
    due, rows = ((first + kept + 0.5) * width).astype(np.float64), counts[kept]
    begins = np.arange(0, len(counts), bins_a_write)
    cuts = [*np.searchsorted(kept, begins).tolist(), len(kept)]
    totals = np.add.reduceat(counts, begins).tolist() if len(counts) else []
    for low, high, total in zip(cuts, cuts[1:], totals, strict=False):
        yield BinnedRows(due[low:high], rows[low:high], total)


def _even_counts(load: Workload, width: float) -> Iterator[NDArray[np.int64]]:
    bins = round(_BLOCK_S / width)
    begin = 0
    while begin * width < load.duration_s - 1e-9:
        length_s = min(bins * width, load.duration_s - begin * width)
        yield load.counts(length_s, width, begin_s=begin * width)
        begin += bins


def _drawn_counts(
    load: Workload, kind: str, seed: int, width: float
) -> Iterator[NDArray[np.int64]]:
    bins = round(_BLOCK_S / width)
    parts = arrivals(kind, load, seed=seed)
    ready: FloatArray = np.empty(0)
    begin = 0
    while begin * width < load.duration_s - 1e-9:
        end_s = (begin + bins) * width
        while not len(ready) or ready[-1] < end_s:
            part = next(parts, None)
            if part is None:
                break
            ready = np.concatenate((ready, part))
        cut = int(np.searchsorted(ready, end_s))
        number = min(bins, int(np.ceil((load.duration_s - begin * width) / width - 1e-9)))
        places = np.minimum((ready[:cut] / width).astype(int) - begin, number - 1)
        yield np.bincount(places, minlength=number).astype(np.int64)
        ready, begin = ready[cut:], begin + bins
