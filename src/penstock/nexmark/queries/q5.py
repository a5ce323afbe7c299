"""Query 5: how many bids auctions get in sliding windows; in the reference, which get the most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries.common import (
    DELAY_S,
    RESULTS,
    QueryTruth,
    Variant,
    begin,
    read_from,
    sink,
    sources,
    usual,
)
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful import row_lists as numbered
from penstock.pipelines.stateful.groups import columns_of, expand, group_rows, take
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.time_windows import windows
from penstock.pipelines.stateful.totals import N
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

#: Size of a window and how often one begins, in seconds.
WINDOWS_S: dict[Variant, tuple[float, float]] = {"thesis": (300, 60), "reference": (10, 2)}
COLUMNS = "auction long, start timestamp, end timestamp, n long"
_COUNTED = """
    with slid as (
        select auction, unnest(
            range(epoch_us("dateTime") // {every} - {size} // {every} + 1,
                epoch_us("dateTime") // {every} + 1)
        ) * {every} as start
        from bids
    ), counted as (
        select auction, start, start + {size} as "end", count(*) as n from slid group by all
    )
    select auction, make_timestamp(start) as start, make_timestamp("end") as "end", n
    from counted where "end" <= $closed
"""
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(
        sql=_COUNTED.format(size=300_000_000, every=60_000_000), closed_by="window"
    ),
    "reference": QueryTruth(
        sql=_COUNTED.format(size=10_000_000, every=2_000_000)
        + "qualify n = max(n) over (partition by start)",
        closed_by="largest",
    ),
}


def build(
    variant: Variant = "thesis", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline; the thesis counts only."""
    pipeline = begin("q5", variant, "bids on auctions in sliding windows")
    setting = setting or usual(variant)
    sources(pipeline, setting, {BIDS: "auction long, dateTime timestamp"}, delay_s)
    size_s, every_s = WINDOWS_S[variant]
    counted = RESULTS if variant == "thesis" else "counts"
    count: Ready = windows(by="auction", size_s=size_s, every_s=every_s, time="dateTime")
    if variant == "reference":
        count = with_completeness(count)
    pipeline.sliced(reads=read_from(BIDS), writes=counted, name="window", delay_s=delay_s)(count)
    if variant == "reference":
        pipeline.topic(RESULTS, COLUMNS)
        pipeline.sliced(
            reads=counted,
            writes=RESULTS,
            key="start",
            state=_STATE,
            state_key=_STATE_KEY,
            time=COMPLETE.name,
        )(largest)
    sink(pipeline, COLUMNS)
    return pipeline


_KEPT = ("auction", "n", EVENT)
#: The state of `largest`: for each window its largest counts so far, and their number.
_STATE, _STATE_KEY = "_rows long, auction long, n long, _event timestamp", "_number long"


def largest(counts: pa.RecordBatch, state: State) -> dict[str, Any]:
    """Return the largest counts of each window that closes; all of them if several are equal.

    The watermark is that of `COMPLETE`, so no count of a closed window is ever late.
    """
    ends = times_of(counts, "end")
    rows, ends = split_late(counts, ends, ends, state)
    _add(rows, ends, state)
    due = state.due()
    windows = columns_of(due, ["start"])
    count = due.column(numbered.ROWS.name).to_numpy()
    owner, kept = numbered.read(state, windows, count)
    numbered.cut(state, windows, count, np.zeros_like(count))
    closed = windows | {"end": due.column("_timer").cast(TIMESTAMP)}
    return take(closed, owner) | columns_of(kept, _KEPT)


def _add(rows: pa.RecordBatch, ends: Any, state: State) -> None:
    groups = group_rows([rows.column("start")], rows.num_rows)
    windows = take(columns_of(rows, ["start"]), groups.first)
    before = numbered.lengths(state, windows, groups.count)
    owner, known = numbered.read(state, windows, before)
    owner = np.concatenate([owner, groups.of])
    values = {name: pa.concat_arrays([known.column(name), rows.column(name)]) for name in _KEPT}
    n = values["n"].to_numpy()
    most = np.zeros(groups.count, np.int64)
    np.maximum.at(most, owner, n)
    best = np.flatnonzero(n == most[owner])
    best = best[np.argsort(owner[best], kind="stable")]
    now = np.bincount(owner[best], minlength=groups.count)
    numbered.cut(state, windows, before, now)
    numbered.write(state, windows, (now, ends[groups.first]), (*expand(now), take(values, best)))


#: All windows that end by this time were emitted in earlier batches; null if there are none.
COMPLETE = pa.field("complete", TIMESTAMP)


def with_completeness(ready: Ready) -> "ClosingWindows":
    """Add the column `complete` to a function that counts by window.

    Counts of one window come from many slices, and a batch may close many windows. The operator
    that merges them must know when it has all of them. The order of windows does not say so, but
    the order of batches does: each count carries the time up to which earlier batches emitted
    all windows.
    """
    return ClosingWindows(by=ready.by, time=ready.time, ready=ready)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingWindows(Ready):
    """See `with_completeness`."""

    ready: Ready

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Do the work for one slice."""
        result: Any = self.ready(given, state)
        if result is None:
            return None
        before = pa.repeat(pa.scalar(state.before, pa.int64()), len(result[N]))
        return {**result, COMPLETE.name: before.cast(TIMESTAMP)}

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the function's columns and `complete`."""
        shape = self.ready.shape(inputs)
        return replace(shape, output=shape.output.append(COMPLETE))

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Name the columns that decide on the slice of a row, by input."""
        return self.ready.keys(inputs)
