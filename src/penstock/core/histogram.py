"""A mergeable histogram of latencies with bounded error and size."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Each bucket is 2 % wider than the one before, so a percentile is at most about 1 % off.
GROWTH = 1.02
_LOG_GROWTH = math.log(GROWTH)
#: Latencies at or below this share one bucket.
SMALLEST_S = 1e-4


@dataclass(slots=True)
class Histogram:
    """Counts of records by latency, in buckets that grow geometrically.

    >>> h = Histogram.of([0.1] * 99 + [5.0])
    >>> h.count, round(h.mean, 3), round(h.percentile(50), 2), h.max
    (100.0, 0.149, 0.1, 5.0)
    """

    counts: dict[int, float] = field(default_factory=dict)
    count: float = 0.0
    total: float = 0.0
    max: float = 0.0

    @classmethod
    def of(cls, latencies_s: Iterable[float]) -> "Histogram":
        """Build from single latencies."""
        histogram = cls()
        for latency in latencies_s:
            histogram.add(latency)
        return histogram

    def add(self, latency_s: float, records: float = 1.0) -> None:
        """Count some records of one latency."""
        bucket = 0
        if latency_s > SMALLEST_S:
            bucket = math.ceil(math.log(latency_s / SMALLEST_S) / _LOG_GROWTH)
        self.counts[bucket] = self.counts.get(bucket, 0.0) + records
        self.count += records
        self.total += latency_s * records
        self.max = max(self.max, latency_s)

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        for bucket, records in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0.0) + records
        self.count += other.count
        self.total += other.total
        self.max = max(self.max, other.max)

    @property
    def mean(self) -> float:
        """Mean latency, exact; 0 if nothing was counted."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latency, within about 1 %."""
        rank = self.count * percent / 100
        total = 0.0
        for bucket in sorted(self.counts):
            total += self.counts[bucket]
            if total >= rank - 1e-9:
                middle = SMALLEST_S * GROWTH ** (bucket - 0.5) if bucket else 0.0
                return min(middle, self.max)
        return self.max

    def share_above(self, latency_s: float) -> float:
        """Return the share of records above a latency, to within one bucket."""
        if not self.count or latency_s >= self.max:
            return 0.0
        bound = 0
        if latency_s > SMALLEST_S:
            bound = math.ceil(math.log(latency_s / SMALLEST_S) / _LOG_GROWTH)
        return sum(n for bucket, n in self.counts.items() if bucket > bound) / self.count

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries: bucket number to count."""
        return {
            "counts": {str(bucket): n for bucket, n in sorted(self.counts.items())},
            "total": self.total,
            "max": self.max,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Histogram":
        """Read what `to_json` wrote."""
        counts = {int(bucket): float(n) for bucket, n in data["counts"].items()}
        return cls(counts, sum(counts.values()), data["total"], data["max"])


def merge_histograms(histograms: Iterable[Histogram]) -> Histogram:
    """Return one histogram with the counts of all.

    >>> merge_histograms([Histogram.of([0.5]), Histogram.of([1.5])]).mean
    1.0
    """
    merged = Histogram()
    for histogram in histograms:
        merged.merge(histogram)
    return merged
