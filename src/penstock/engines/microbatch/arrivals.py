"""When rows arrived in the pipeline, whatever their event times are: latency counts from there.

Event times that a user names may be hours old, or wrong. So the driver follows the rows: an
ingest batch gives its rows their arrival, and a batch of an operator hands it on to what it writes.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.event_counts import Events, merge

#: Spans that are remembered of each topic; what is older counts as the oldest of them.
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
        """Rows of a topic up to this offset have arrived at a time, unless they are known."""
        if end > self.end(topic):
            self._spans.setdefault(topic, deque(maxlen=MAX_SPANS)).append((end, at))

    def read(self, topic: str, start: int, end: int) -> Iterator[tuple[float, int]]:
        """Yield when the rows [start, end) arrived, and how many did."""
        for span_end, at in self._spans.get(topic, ()):
            if span_end > start:
                rows = min(span_end, end) - start
                if rows <= 0:
                    return
                yield at, rows
                start += rows

    def assign_arrivals(self, record: BatchRecord) -> BatchRecord:
        """Return the record of a batch with arrivals for event times; note what it wrote."""
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
    """Let so many rows have the same arrivals, in proportion.

    >>> _scale([(1.0, 2), (5.0, 6)], 4)
    ((1.0, 1), (5.0, 3))
    """
    total, seen, given, scaled = sum(count for _, count in spans), 0, 0, []
    for at, count in spans:
        seen += count
        until = rows * seen // total
        if until > given:
            scaled.append((at, until - given))
        given = until
    return tuple(scaled)
