"""Retry rules: when a failed operator is restarted, and when it is given up. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

#: Seconds before the second restart; each later delay doubles. The first restart has no delay.
FIRST_DELAY_S = 1.0
MAX_DELAY_S = 60.0
#: A failure after this many seconds has a new cause.
STABLE_S = 120.0
#: Equal failures of the user's code on the same rows after which the run ends.
MAX_SAME = 2

#: Rows [first, end) of topics.
Rows = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSeries:
    """Consecutive failures of one operator, without a finished batch in between."""

    #: The batch that failed, and the rows that it reads.
    batch: int
    rows: Rows = ()
    #: Monotonic clock at the first failure.
    since: float
    tries: int = 0
    #: The signature of the last failure, and how often in a row it occurred.
    signature: str = ""
    same: int = 0
    #: Monotonic clock of the restart.
    due: float = 0.0
    reason: str = ""

    def is_over(self, now: float, retry_for_s: float) -> bool:
        """Whether it has lasted longer than the user allows."""
        return now - self.since > retry_for_s


def compute_delay_s(tries: int) -> float:
    """Return the delay of the restart with this number.

    >>> [compute_delay_s(tries) for tries in (1, 2, 3, 4, 7, 8, 1000)]
    [0.0, 1.0, 2.0, 4.0, 32.0, 60.0, 60.0]
    """
    if tries <= 1:
        return 0.0
    return min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(tries - 2, 30))


def count_failure(
    before: FailureSeries | None,
    *,
    batch: int,
    rows: Rows,
    signature: str,
    reason: str,
    now: float,
    started_at: float = -inf,
) -> FailureSeries:
    """Add a failure to a series; a batch that was finished in between begins a new series.

    `started_at` is the time of the last start.
    """
    if before is None or (before.batch, before.rows) != (batch, rows):
        before = FailureSeries(batch=batch, rows=rows, since=now)
    elif before.tries and now - started_at > STABLE_S:
        # the time for retries begins anew, but an equal failure still counts as the same
        before = replace(before, since=now, tries=0)
    tries = before.tries + 1
    return replace(
        before,
        tries=tries,
        signature=signature,
        same=before.same + 1 if signature == before.signature else 1,
        due=now + compute_delay_s(tries),
        reason=reason,
    )


def list_ranges(start: dict[str, int], end: dict[str, int]) -> Rows:
    """Return the ranges between offsets, without empty ones."""
    ranges: Sequence[tuple[str, int, int]] = [
        (topic, start.get(topic, 0), stop) for topic, stop in end.items()
    ]
    return tuple((topic, first, stop) for topic, first, stop in ranges if stop > first)
