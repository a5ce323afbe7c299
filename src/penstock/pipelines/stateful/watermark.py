"""Watermarks: the time up to which events are taken to be complete, in microseconds.

The watermark of a batch follows from the rows of earlier batches. So it is known when the batch
starts, and is the same for all slices.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful.groups import Numbers, pc
from penstock.state.handle import State

#: The time of a row that has none.
NO_TIME = np.iinfo(np.int64).min

Times = Mapping[str, int | None]


def watermark_after(
    before: int | None, latest: Times, delay_us: int, idle: Collection[str] = ()
) -> int | None:
    """Return the watermark, given the latest times of the inputs so far.

    It is the earliest of them minus the delay, and never falls. It is None while an input has had
    no rows. Idle inputs are ignored as long as another one is not idle.

    >>> watermark_after(None, {"bids": 900, "people": 700}, delay_us=100)
    600
    >>> watermark_after(600, {"bids": 950, "people": 650}, delay_us=100)
    600
    >>> watermark_after(None, {"bids": 950, "people": None}, delay_us=100)
    >>> watermark_after(None, {"bids": 950, "people": None}, delay_us=100, idle={"people"})
    850
    """
    counted = [time for topic, time in latest.items() if topic not in idle]
    times = [time for time in counted if time is not None]
    if not times or len(times) < len(counted):
        return before
    now = min(times) - delay_us
    return now if before is None else max(before, now)


def later(latest: Times, batch: Times) -> dict[str, int | None]:
    """Return the latest times so far, after those of one more batch.

    >>> later({"bids": 900, "people": None}, {"bids": 800, "people": None})
    {'bids': 900, 'people': None}
    """
    return {topic: latest_of(latest.get(topic), time) for topic, time in batch.items()}


def latest_of(*times: int | None) -> int | None:
    """Return the latest of some times, None if none is known.

    >>> latest_of(3, None, 5)
    5
    """
    return max((time for time in times if time is not None), default=None)


def latest_time(batch: pa.RecordBatch, time: str) -> int | None:
    """Return the latest time in a batch, or None without rows."""
    newest = pc.max(_micros(batch.column(time))).as_py()
    return None if newest is None else int(newest)


def times_of(batch: pa.RecordBatch, time: str) -> Numbers:
    """Return the time of each row; a row without one has `NO_TIME`."""
    times: Numbers = _micros(batch.column(time)).fill_null(NO_TIME).to_numpy()
    return times


def split_late(
    batch: pa.RecordBatch, times: Numbers, closes: Numbers, state: State
) -> tuple[pa.RecordBatch, Numbers]:
    """Return the rows that are not late, and their times; report late rows to the state.

    `closes` is the time at which the window of each row closes. A row without a time is late.
    """
    late = times == NO_TIME
    if state.watermark is not None:
        late |= closes <= state.watermark
    if not late.any():
        return batch, times
    state.late(batch.filter(pa.array(late)))
    return batch.filter(pa.array(~late)), times[~late]


def _micros(column: pa.Array) -> pa.Array:
    return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
