"""Arrival times of rows in the pipeline; behind an ingest, latency counts from them.

Event times from outside may be hours old, or wrong. So the driver tracks arrivals: the rows of
an ingest batch arrive with it, and the outputs of an operator's batch inherit its arrivals.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.event_counts import Events, merge

#: Spans that are kept for each topic; older rows count as the oldest span.
MAX_SPANS = 4096


class Arrivals:
    """By topic: up to which offset rows had arrived at which time."""

    def __init__(self) -> None:
        self._spans: dict[str, deque[tuple[int, float]]] = {}

    def end(self, topic: str) -> int:
        """Return the offset up to which arrivals are known."""
        spans = self._spans.get(topic)
        return spans[-1][0] if spans else 0

    def note(self, topic: str, end: int, at: float) -> None:
        """Record that the rows up to an offset arrived at a time; known rows stay as they are."""
        if end > self.end(topic):
            self._spans.setdefault(topic, deque(maxlen=MAX_SPANS)).append((end, at))

    def read(self, topic: str, start: int, end: int) -> Iterator[tuple[float, int]]:
        """Yield (arrival time, number of rows) for the rows [start, end)."""
        for span_end, at in self._spans.get(topic, ()):
            if span_end > start:
                rows = min(span_end, end) - start
                if rows <= 0:
                    return
                yield at, rows
                start += rows

    def assign_arrivals(self, record: BatchRecord) -> BatchRecord:
        """Return a record with arrivals as event times; record the arrivals of its outputs."""
        spans = sorted(
            span
            for topic, start in record.start.items()
            for span in self.read(topic, start, record.end.get(topic, start))
        )
        # an ingest reads no topic: its rows arrive when its batch begins
        known = spans or [(record.planned_at, 1)]
        for topic, segments in record.outputs.items():
            self._pass_on(topic, sum(segment.rows for segment in segments), known)
        return replace(record, events=merge([_scale(known, record.rows_out)]))

    def _pass_on(self, topic: str, rows: int, spans: list[tuple[float, int]]) -> None:
        before = self.end(topic)
        for at, count in _scale(spans, rows):
            before += count
            self.note(topic, before, at)


def _scale(spans: list[tuple[float, int]], rows: int) -> Events:
    """Distribute a number of rows over arrivals, in proportion.

    >>> _scale([(1.0, 2), (5.0, 6)], 4)
    ((1.0, 1), (5.0, 3))
    """
    total, seen, assigned, scaled = sum(count for _, count in spans), 0, 0, []
    for at, count in spans:
        seen += count
        until = rows * seen // total
        if until > assigned:
            scaled.append((at, until - assigned))
        assigned = until
    return tuple(scaled)
