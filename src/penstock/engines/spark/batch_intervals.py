"""Measures what batches cost beside their rows, and says how closely they may follow."""

import os
from collections import deque
from collections.abc import Callable, Mapping

from penstock.engines.microbatch.batch_interval import (
    OverheadLimit,
    OverheadPeriod,
    choose_interval_s,
)
from penstock.engines.spark.cluster.process_times import ProcessTimes, read_process_times
from penstock.engines.spark.operator_config import BatchTiming

#: Seconds of a period, and the number of periods that are looked back on.
PERIOD_S, PERIODS = 2.0, 15


class BatchIntervals:
    """The interval between batches of a running pipeline; `update` it often."""

    def __init__(
        self,
        limit: OverheadLimit,
        interval_s: float,
        read_times: Callable[[], ProcessTimes] = read_process_times,
    ) -> None:
        self.interval_s = interval_s
        self._limit, self._read_times = limit, read_times
        self._periods: deque[OverheadPeriod] = deque(maxlen=PERIODS)
        self._began: tuple[float, float, Mapping[str, int]] | None = None

    def update(self, now: float, batches: Mapping[str, int]) -> bool:
        """Measure; return whether the interval has changed. `batches` are counts by operator."""
        if self._began is not None and now - self._began[0] < PERIOD_S:
            return False
        cpu_s, last = self._read_times().overhead_s, self._began
        self._began = now, cpu_s, dict(batches)
        if last is None:
            return False
        new = [batches[name] - last[2].get(name, 0) for name in batches]
        self._periods.append(
            OverheadPeriod(max(0.0, cpu_s - last[1]), sum(new), sum(count > 0 for count in new))
        )
        before_s = self.interval_s
        self.interval_s = choose_interval_s(before_s, self._periods, self._limit)
        return self.interval_s != before_s


def make_intervals(timing: BatchTiming) -> BatchIntervals | None:
    """Return the measurement of a run; None if its interval is fixed."""
    if timing.overhead_share is None:
        return None
    limit = OverheadLimit(share=timing.overhead_share, cores=os.cpu_count() or 1)
    return BatchIntervals(limit, timing.min_interval_s)
