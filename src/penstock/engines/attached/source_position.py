"""Tracks one source of a query in rows: what it has read, what waits, how fast more arrives."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.engines.attached.file_backlog import FileBacklog
from penstock.engines.attached.progress import SourceProgress
from penstock.engines.attached.source_offsets import OffsetCount, count_offsets
from penstock.engines.microbatch.arrivals import Arrivals

#: Rows that arrived between two reports are spread over this many moments.
_MOMENTS = 8
#: The unit of a source whose backlog is unknown: rows that were read.
_TAKEN = "taken"


class _ArrivalCount(NamedTuple):
    """What has arrived at a source since it is tracked, in some unit."""

    unit: str
    amount: float
    #: What no finished batch has read.
    waiting: float
    #: None before the first row.
    rows_per_unit: float | None


@dataclass(slots=True, kw_only=True)
class SourcePosition:
    """One source since it is tracked. Positions are rows; times are wall-clock seconds.

    Progress is a matter of the past: it says what waited when the last batch was planned. While
    the query is silent, rows keep arriving, so `end` is extrapolated with the rate so far. Files
    are listed in the middle of batches, too.
    """

    name: str
    #: Rates are measured over this long.
    window_s: float
    #: The files of a source that reports no backlog; None for all others.
    files: FileBacklog | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    #: Rows that were read.
    taken: int = 0
    #: The last backlog in the unit of the source, and the unit; None if the source reports none.
    backlog: float | None = None
    unit: str = ""
    #: The offsets of each partition in the last batch, for sources with partitions.
    partitions: tuple[float, ...] = ()
    #: Rows that can be read now, and the time up to which they are extrapolated.
    end: int = 0
    first: int = 0
    until: float = 0.0
    _read_rows: float = 0.0
    _read_offsets: float = 0.0
    #: (time, what had arrived by then) in some unit, as reported, and the rows of one unit.
    _units: deque[tuple[float, float]] = field(default_factory=deque)
    _counted_unit: str = ""
    _rows_per_unit: float | None = None
    #: Time of the last report, and the rows that had arrived by then.
    _last_report: tuple[float, float] | None = None

    def take(self, source: SourceProgress, at: float, *, is_batch: bool) -> tuple[int, int]:
        """Read the report of a trigger that began at a time; return the rows of its batch."""
        count, start = count_offsets(source), self.taken
        if is_batch:
            self.taken += self._count_rows(source, count)
        self.partitions = count.partitions or self.partitions
        if self.files is not None:
            self.files.take(source.start, source.end, self.taken - start, at)
        arrivals, at = self._count_files() or (self._count_arrivals(count), at)
        self._note(arrivals, at)
        return start, self.taken

    def _count_files(self) -> tuple[_ArrivalCount, float] | None:
        """Return the files that have arrived, and when they were listed; None if unknown."""
        files = self.files
        if files is None or (listing := files.refresh()) is None:
            return None
        self.backlog, self.unit = files.unfinished, "files"
        waiting, rows_per_file = files.unfinished, files.rows_per_file
        return _ArrivalCount("files", files.arrived, waiting, rows_per_file), listing.at

    def _note(self, arrivals: _ArrivalCount, at: float) -> None:
        """Note what had arrived by a time."""
        self._note_units(arrivals, at)
        self._note_rows(self.taken + arrivals.waiting * (arrivals.rows_per_unit or 0.0), at)

    def _count_rows(self, source: SourceProgress, count: OffsetCount) -> int:
        """Return the rows of a batch; where offsets are rows, a retried stage counts only once."""
        rows = source.rows or 0
        if count.are_rows and count.read is not None:
            rows = round(count.read)
        self._read_rows += rows
        self._read_offsets += count.read or 0.0
        return rows

    def _count_arrivals(self, count: OffsetCount) -> _ArrivalCount:
        """Count what has arrived: rows or offsets; without a backlog, what was read."""
        self.backlog, self.unit = count.waiting, count.unit
        if count.waiting is None or count.unit != "offsets":
            return _ArrivalCount(_TAKEN, self.taken, 0.0, 1.0)
        waiting = count.waiting
        if count.are_rows:
            return _ArrivalCount("rows", self.taken + waiting, waiting, 1.0)
        per_offset = self._rows_per_offset
        return _ArrivalCount("offsets", self._read_offsets + waiting, waiting, per_offset)

    @property
    def _rows_per_offset(self) -> float | None:
        return self._read_rows / self._read_offsets if self._read_offsets else None

    @property
    def has_backlog(self) -> bool:
        """Whether the backlog is known, in whatever unit."""
        return self.backlog is not None

    def _note_units(self, arrivals: _ArrivalCount, at: float) -> None:
        """Note what had arrived by a time, in the unit of the source."""
        if arrivals.unit != self._counted_unit:
            self._units.clear()
        self._counted_unit, self._rows_per_unit = arrivals.unit, arrivals.rows_per_unit
        if self._units and self._units[-1][0] == at:  # the same listing again
            self._units.pop()
        self._units.append((at, arrivals.amount))
        while len(self._units) > 2 and self._units[1][0] <= at - self.window_s:
            self._units.popleft()

    def _note_rows(self, arrived: float, at: float) -> None:
        """Note how many rows had arrived by a time."""
        before_at, before = self._last_report or (at, arrived)
        for step in range(1, _MOMENTS + 1):
            share = step / _MOMENTS
            rows = int(before + (arrived - before) * share)
            self.arrivals.note(self.name, rows, before_at + (at - before_at) * share)
        self._last_report = (at, arrived)
        self.end, self.until = max(self.taken, int(arrived)), at

    @property
    def waiting(self) -> int:
        """Rows that waited at the last report, without those that have arrived since."""
        return max(0, int(self._last_report[1]) - self.taken) if self._last_report else 0

    @property
    def rate(self) -> float | None:
        """Rows/s that arrived over the window of reports; None before the second report.

        It is counted in the unit of the source: an estimate of rows that changes is no arrival.
        """
        if len(self._units) < 2 or self._rows_per_unit is None:
            return None
        (start, before), (end, after) = self._units[0], self._units[-1]
        if end <= start:
            return None
        return self._rows_per_unit * max(0.0, after - before) / (end - start)

    def extrapolate(self, now: float) -> None:
        """Add the rows that arrive at the rate so far until now."""
        if (files := self._count_files()) is not None:
            self._note(*files)
        if self._last_report and (rate := self.rate):
            at, arrived = self._last_report
            self.until = max(at, now)
            self.end = max(self.taken, int(arrived + rate * (self.until - at)))

    def refresh(self) -> int:
        """Return the end; `extrapolate` moves it."""
        return self.end
