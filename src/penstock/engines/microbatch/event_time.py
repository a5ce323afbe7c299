"""Event-time progress of the inputs of an operator: what may advance its watermark. Pure.

Rows of one source batch are in no order of time. So the newest time of a source batch counts
when the last of its rows has been read, however many batches of this operator, or of those in
front of it, that took. Then no row is late that is at most the delay older than what its source
had given before, as if Spark had read the source in one query. Where an operator has several
inputs, the slowest one decides, here and for all operators behind.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.pipelines.stateful.watermark import latest_of


class ColumnTime(NamedTuple):
    """The newest time of a column, in microseconds.

    Of source batches that were read completely, and of rows that do not count yet.
    """

    complete: int | None = None
    pending: int | None = None


#: Later than any time: its rows alone say how far a topic is.
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
    """Return the progress of an input when one more of its commits has been read to its end.

    `newest` are the newest times of its rows, `limits` up to when its source batches are
    complete, where its writer says so.
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
    """Rows up to `newest` were read; source batches are complete up to `limit`.

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
    """Return by column up to when all inputs that have it are complete; None if one has no rows.

    Idle inputs are not waited for, unless all are idle.

    >>> one, two = {"at": ColumnTime(5)}, {"at": ColumnTime(3, 9), "seen": ColumnTime()}
    >>> find_slowest_times({"a": one, "b": two})
    {'at': 3, 'seen': None}
    >>> find_slowest_times({"a": one, "b": two}, idle=["b"])
    {'at': 5}
    """
    waited = [each for topic, each in inputs.items() if topic not in idle] or [*inputs.values()]
    return {
        column: _earliest(each[column].complete for each in waited if column in each)
        for column in dict.fromkeys(column for each in waited for column in each)
    }


def _earliest(times: Iterable[int | None]) -> int | None:
    known = [*times]
    return None if None in known else min(time for time in known if time is not None)
