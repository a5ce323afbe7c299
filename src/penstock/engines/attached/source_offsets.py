"""What a source has read and what waits in front of it, by its offsets. Pure.

Kafka's offsets are rows by topic and partition. Other sources count seconds, batches or files;
their offsets become rows by the rows that earlier batches read for each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.engines.attached.progress import SourceProgress, read_number

#: Metrics of sources that report a backlog in another unit.
_METRICS = (("numFilesOutstanding", "files"), ("numBytesOutstanding", "bytes"))
#: Sources whose offset is the number of a batch or a file listing, and counts nothing.
_UNCOUNTED = ("FileStreamSource", "DeltaSource", "CloudFilesSource")
#: A source whose offset has a time beside its count of rows.
_BATCH_RATE = "RatePerMicroBatch"
#: The keys of an offset of Penstock's topics (`engines/spark/io/source.py`): rows by topic in "at".
_TOPIC_KEYS = {"at", "skips"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCount:
    """The offsets of one source in one trigger; None where they cannot be counted."""

    #: Offsets that the batch read, and offsets that waited behind it when it was planned.
    read: float | None = None
    waiting: float | None = None
    #: offsets, files or bytes.
    unit: str = "offsets"
    #: Whether one offset is one row.
    are_rows: bool = False
    #: The offsets of each partition that the batch read, for sources that have partitions.
    partitions: tuple[float, ...] = ()


def count_offsets(source: SourceProgress) -> OffsetCount:
    """Count what a source has read and what waits, in the unit of the source."""
    for name, unit in _METRICS:
        amount = read_number(source.metrics.get(name))
        if amount is not None and amount >= 0:
            return OffsetCount(waiting=amount, unit=unit)
    if source.description.startswith(_UNCOUNTED):
        return OffsetCount(unit="files")
    start, end, latest = (_numbers(o, source) for o in (source.start, source.end, source.latest))
    is_topic = end is not source.end and isinstance(end, Mapping)
    return OffsetCount(
        read=measure_distance(start, end),
        waiting=measure_distance(end, latest),
        are_rows=is_topic or _has_partitions(end) or _has_partitions(latest),
        partitions=_read_partitions(start, end) if _has_partitions(end) else (),
    )


def _numbers(offset: Any, source: SourceProgress) -> Any:
    """Return the part of an offset that counts rows."""
    if isinstance(offset, Mapping):
        if source.description.startswith(_BATCH_RATE):
            return offset.get("offset")
        if offset.keys() == _TOPIC_KEYS:
            return offset["at"]
    return offset


def _has_partitions(offset: Any) -> bool:
    """Whether an offset has the form of Kafka's: {"topic": {"partition": offset}}."""
    if not isinstance(offset, Mapping) or not offset:
        return False
    return all(isinstance(topic, Mapping) for topic in offset.values())


def measure_distance(low: Any, high: Any) -> float | None:
    """Return the distance of two offsets, summed over partitions; None if it is no number.

    A partition that is new counts from 0; one that was made again counts nothing.

    >>> measure_distance({"bids": {"0": 5, "1": 7}}, {"bids": {"0": "9", "1": 7, "2": 3}})
    7.0
    >>> measure_distance(3, 8), measure_distance(None, 8), measure_distance({"a": "x"}, {"a": "y"})
    (5.0, None, None)
    """
    if isinstance(low, Mapping) and isinstance(high, Mapping):
        parts = [measure_distance(low.get(key, _zero(value)), value) for key, value in high.items()]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None
    first, last = read_number(low), read_number(high)
    return None if first is None or last is None else max(0.0, last - first)


def _zero(offset: Any) -> Any:
    """Return the start of an offset: zero, or zero for each partition."""
    return (
        {key: _zero(value) for key, value in offset.items()} if isinstance(offset, Mapping) else 0
    )


def _read_partitions(start: Any, end: Any) -> tuple[float, ...]:
    """Return how much of each partition was read."""
    if not isinstance(start, Mapping):
        return ()
    parts = [
        measure_distance(_inner(start, topic).get(partition, 0), offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    ]
    return tuple(part for part in parts if part is not None)


def _inner(offset: Mapping[str, Any], topic: str) -> Mapping[str, Any]:
    value = offset.get(topic)
    return value if isinstance(value, Mapping) else {}
