"""Event-time progress of the inputs of an operator, which advances its watermark. Pure.

Rows of one source batch are not ordered by time. So the newest time of a source batch counts
only after its last row was read, in however many batches of this operator and of those upstream.
Then a row is late only if it is older than earlier rows of its source by more than the delay, as
if Spark had read the source in one query. With several inputs the slowest one decides, here and
for all operators downstream.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.pipelines.stateful.watermark import latest_of


class ColumnTime(NamedTuple):
    """The newest time of a column, in microseconds.

    `complete`: of source batches that were read completely; `pending`: of rows after them.
    """

    complete: int | None = None
    pending: int | None = None


#: Later than any time: only its rows limit the progress of a topic.
_NO_LIMIT = 2**63 - 1

#: By timestamp column.
EventTimeProgress = Mapping[str, ColumnTime]


def advance_progress(
    progress: EventTimeProgress,
    newest: Mapping[str, int],
    limits: Mapping[str, int | None],
    *,
    is_complete: bool,
) -> EventTimeProgress:
    """Return the progress of an input after one more commit was read to its end.

    `newest` are the newest times of its rows. `limits` are the times up to which its writer
    reports complete source batches, where it does.
    """
    return {
        column: _advance(
            progress.get(column, ColumnTime()),
            newest.get(column),
            limits.get(column, _NO_LIMIT),
            is_complete=is_complete,
        )
        for column in dict.fromkeys((*progress, *newest))
    }


def _advance(
    before: ColumnTime, newest: int | None, limit: int | None, *, is_complete: bool
) -> ColumnTime:
    """Return the progress after rows up to `newest`, with source batches complete up to `limit`.

    >>> _advance(ColumnTime(5, 9), 7, 20, is_complete=False)
    ColumnTime(complete=5, pending=9)
    >>> _advance(ColumnTime(5, 9), 7, 20, is_complete=True)
    ColumnTime(complete=9, pending=None)
    >>> _advance(ColumnTime(5, None), 30, 20, is_complete=True)
    ColumnTime(complete=20, pending=30)
    """
    seen = latest_of(before.pending, newest)
    if not is_complete or seen is None or limit is None:
        return ColumnTime(before.complete, seen)
    reached = min(seen, limit)
    return ColumnTime(latest_of(before.complete, reached), seen if seen > reached else None)


def find_slowest_times(
    inputs: Mapping[str, EventTimeProgress], idle: Collection[str] = ()
) -> dict[str, int | None]:
    """Return, by column, the time up to which all its inputs are complete; None without rows.

    Idle inputs do not count, unless all are idle.

    >>> fast, slow = {"at": ColumnTime(5)}, {"at": ColumnTime(3, 9), "seen": ColumnTime()}
    >>> find_slowest_times({"a": fast, "b": slow})
    {'at': 3, 'seen': None}
    >>> find_slowest_times({"a": fast, "b": slow}, idle=["b"])
    {'at': 5}
    """
    active = [times for topic, times in inputs.items() if topic not in idle] or [*inputs.values()]
    return {
        column: _find_earliest(times[column].complete for times in active if column in times)
        for column in dict.fromkeys(column for times in active for column in times)
    }


def _find_earliest(times: Iterable[int | None]) -> int | None:
    known = [*times]
    return None if None in known else min(time for time in known if time is not None)
