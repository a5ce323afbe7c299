"""What a node does with records: make them, process them, or add them up."""

import asyncio
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol

from penstock.decentralized.processes.functions import Fields, Function, add_counts, write_line
from penstock.decentralized.processes.load import LOADS, STEP_S
from penstock.decentralized.processes.run_spec import ProcessRunSpec

#: How often the source looks for records that are due.
_PULSE_S = 0.02


class Record(NamedTuple):
    """A record on its way; its sequence number says which one it is."""

    sequence: int
    #: When it was due, by the monotonic clock of this machine.
    due_s: float
    fields: Fields


class Outlet(Protocol):
    """What a node offers to its work."""

    def note_arrival(self) -> None:
        """Report that a record has arrived and waits."""

    async def wait_for_permission(self) -> None:
        """Wait until records may be taken from outside."""

    async def wait_for_record(self) -> None:
        """Wait until a record that has arrived may be processed."""

    def pass_on(self, result: Record) -> None:
        """Report a record as processed, and send its result to a successor if there is one."""


@dataclass(kw_only=True, slots=True)
class WorkReport:
    """What a node did since its last report."""

    received: int = 0
    #: Sequence numbers.
    processed: list[int] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return asdict(self)


class NodeWork:
    """Takes records from a queue in their order; this class does nothing with them."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        #: Records with the times of their arrival.
        self._queue: deque[tuple[float, Record]] = deque()
        self._report = WorkReport()
        #: All records that have arrived so far.
        self.received = 0

    def accept(self, record: Record) -> None:
        """Put a record into the queue."""
        self._queue.append((time.monotonic(), record))
        self.received += 1
        self._report.received += 1
        self._outlet.note_arrival()

    def take_report(self) -> WorkReport:
        """Return what happened since the last call."""
        report, self._report = self._report, WorkReport()
        return report

    async def run(self) -> None:
        """Work until the node cancels this task."""
        while True:
            await self._outlet.wait_for_record()
            result = await self._process(*self._queue[0])
            # from here on without a pause: the result leaves, and the record is done
            self._queue.popleft()
            self._report.processed.append(result.sequence)
            self._outlet.pass_on(result)

    async def _process(self, _arrival_s: float, record: Record) -> Record:
        return record


class OperatorWork(NodeWork):
    """Calls the function of an operator, and waits as long as the emulated service takes."""

    def __init__(self, outlet: Outlet, function: Function, service_s: float) -> None:
        super().__init__(outlet)
        self._function, self._service_s, self._free_s = function, service_s, 0.0

    async def _process(self, arrival_s: float, record: Record) -> Record:
        # a process that wakes up late makes up for it, so that its capacity is the stated one
        self._free_s = max(arrival_s, self._free_s) + self._service_s
        result = record._replace(fields=self._function(record.fields))
        await asyncio.sleep(max(0.0, self._free_s - time.monotonic()))
        return result


class SinkWork(NodeWork):
    """Adds up counts, and measures latencies."""

    async def _process(self, _arrival_s: float, record: Record) -> Record:
        self._report.latencies_s.append(round(time.monotonic() - record.due_s, 4))
        add_counts(self._report.counts, record.fields)
        return record


class SourceWork(NodeWork):
    """Makes records at the rate of the load until it is stopped."""

    def __init__(self, outlet: Outlet, spec: ProcessRunSpec) -> None:
        super().__init__(outlet)
        self._rate = LOADS[spec.load](*spec.rates, spec.interval_s, spec.seed)
        self._seed, self._made = spec.seed, 0
        self.is_stopped = False

    async def run(self) -> None:
        """Make the records that are due, again and again."""
        await self._outlet.wait_for_permission()
        began_s = last_s = time.monotonic()
        due = 0.0
        while True:
            await asyncio.sleep(_PULSE_S)
            if self.is_stopped:
                return
            now_s = time.monotonic()
            due += self._rate(int((now_s - began_s) / STEP_S)) * (now_s - last_s)
            last_s = now_s
            while self._made < int(due):
                self._make(now_s)

    def _make(self, now_s: float) -> None:
        record = Record(self._made, now_s, {"line": write_line(self._made, self._seed)})
        self._made += 1
        self._report.processed.append(record.sequence)
        self._outlet.note_arrival()
        self._outlet.pass_on(record)
