"""Deals the rows of a batch to its k tasks. Pure: numbers in, ranges out.

The rows of a batch form one sequence, topic after topic; a task gets one range of it, so order
is kept. *even*: equal ranges. *load*: ranges by the speed of each replica, as the load balancing
grouping of Wladdimiro et al. (SBAC-PAD 2022, IV-A) deals single records by the remaining work of
each replica. *key*: every task reads all rows and keeps those of its keys.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: The smallest part of an equal share for a replica, so that its speed is still measured.
MIN_PART = 0.05


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Rows [start, end) of one topic."""

    topic: str
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.end - self.start


def split_by_speed(
    speeds: Sequence[float | None], remaining_s: Sequence[float], rows: int
) -> list[float]:
    """Return rows for each replica such that all are expected to finish at the same time.

    `speeds` are rows/s, None if not measured; `remaining_s` is the work that each replica must
    finish first.

    >>> split_by_speed([100, 100, 50], [0, 0, 0], 500)
    [200.0, 200.0, 100.0]
    >>> split_by_speed([100, 100], [0, 1], 300)
    [200.0, 100.0]
    """
    known = [speed for speed in speeds if speed]
    mean = sum(known) / len(known) if known else 1.0
    known_speeds = [max(speed or mean, MIN_PART * mean) for speed in speeds]
    # fill the replica that is free first until the next one is free, and so on
    order = sorted(range(len(known_speeds)), key=lambda i: remaining_s[i])
    end_s, together, left = 0.0, 0.0, float(rows)
    for place, index in enumerate(order):
        wait_s = remaining_s[index]
        if place and left <= (wait_s - end_s) * together:
            break
        left -= (wait_s - end_s) * together if place else 0.0
        end_s, together = wait_s, together + known_speeds[index]
    end_s += left / together
    return [
        max(0.0, end_s - wait_s) * speed
        for wait_s, speed in zip(remaining_s, known_speeds, strict=True)
    ]


def compute_cuts(parts: Sequence[float], rows: int) -> list[int]:
    """Return the edges of ranges if `rows` are dealt in proportion to `parts`.

    >>> compute_cuts([1, 1, 2], 10)
    [0, 2, 5, 10]
    """
    total = sum(parts) or 1.0
    edges, reached = [0], 0.0
    for part in parts:
        reached += part
        edges.append(round(rows * reached / total - 1e-9))
    edges[-1] = rows
    return edges


def deal(line: Sequence[OffsetRange], edges: Sequence[int]) -> list[tuple[OffsetRange, ...]]:
    """Cut a sequence of ranges at the given edges, one part per task.

    >>> for part in deal([OffsetRange("a", 5, 8), OffsetRange("b", 0, 3)], [0, 2, 6]):
    ...     print(*part)
    OffsetRange(topic='a', start=5, end=7)
    OffsetRange(topic='a', start=7, end=8) OffsetRange(topic='b', start=0, end=3)
    """
    dealt: list[tuple[OffsetRange, ...]] = []
    for begin, end in pairwise(edges):
        part, passed = [], 0
        for span in line:
            low = max(begin - passed, 0)
            high = min(end - passed, span.rows)
            if low < high:
                part.append(OffsetRange(span.topic, span.start + low, span.start + high))
            passed += span.rows
        dealt.append(tuple(part))
    return dealt


def subtract_ranges(span: OffsetRange, skipped: Sequence[tuple[int, int]]) -> list[OffsetRange]:
    """Return a range without some sorted subranges.

    >>> subtract_ranges(OffsetRange("a", 0, 10), [(2, 4), (8, 12)])
    [OffsetRange(topic='a', start=0, end=2), OffsetRange(topic='a', start=4, end=8)]
    """
    left, reached = [], span.start
    for low, high in skipped:
        if high <= reached or low >= span.end:
            continue
        if low > reached:
            left.append(OffsetRange(span.topic, reached, low))
        reached = min(high, span.end)
    if reached < span.end:
        left.append(OffsetRange(span.topic, reached, span.end))
    return left


def take_open_first(
    waiting: Mapping[str, int], limit: int, open_topics: Collection[str]
) -> dict[str, int]:
    """Return how many rows to take of each topic; partly read source batches come first.

    Otherwise two topics could always end inside a source batch. Then no batch would ever be
    complete in both, and watermarks downstream would not advance.

    >>> take_open_first({"a": 30, "b": 10}, 20, ["b"])
    {'a': 10, 'b': 10}
    """
    first = take({topic: rows for topic, rows in waiting.items() if topic in open_topics}, limit)
    others = {topic: rows for topic, rows in waiting.items() if topic not in open_topics}
    rest = take(others, limit - sum(first.values()))
    return {topic: first[topic] if topic in first else rest[topic] for topic in waiting}


def take(waiting: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return how many rows to take of each topic, in proportion to its waiting rows.

    >>> take({"a": 30, "b": 10}, 20)
    {'a': 15, 'b': 5}
    """
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    edges = compute_cuts([float(rows) for rows in waiting.values()], limit)
    return {
        topic: min(high - low, waiting[topic])
        for topic, low, high in zip(waiting, edges, edges[1:], strict=False)
    }
