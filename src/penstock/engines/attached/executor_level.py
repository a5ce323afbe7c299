"""The executors of an attached application: how many there are, and how many its queries need."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.core.executors import ExecutorRules
from penstock.engines.attached.executor_shares import (
    count_executors,
    describe_needs,
    split_executors,
)
from penstock.engines.attached.foreign_executors import ForeignExecutors
from penstock.engines.events import Event, ExecutorsRequestedEvent
from penstock.engines.spark.cluster.executors import Executors


class ExecutorLevel:
    """Counts executors, and changes their number if it may. Times are wall-clock seconds."""

    def __init__(
        self,
        count: Callable[[], int],
        bounds: tuple[int, int],
        *,
        host: ForeignExecutors | None = None,
        why_not: str = "",
        delay_s: float = 15.0,
    ) -> None:
        """`count` returns the executors that take tasks; `why_not` says why there is no host.

        Executors are released when fewer have been enough for `delay_s`.
        """
        self._count, self._host, self.bounds, self.why_not = count, host, bounds, why_not
        #: Executors that take tasks.
        self.alive = count()
        #: The last known busy share of each query.
        self._busy: dict[str, float] = {}
        #: Whether fewer executors are needed than are requested.
        self.is_releasing = False
        rules = ExecutorRules(low=bounds[0], high=bounds[1], cores=1, delay_s=delay_s)
        self._executors = Executors(host, rules, self.alive) if host is not None else None
        self._spent_s, self._updated_at = 0.0, 0.0

    @property
    def can_act(self) -> bool:
        """Whether executors can be requested."""
        return self._executors is not None

    @property
    def requested(self) -> int:
        """Requested executors."""
        return self._executors.requested if self._executors is not None else self.alive

    @property
    def executor_s(self) -> float:
        """Executor seconds so far."""
        return self._executors.executor_s if self._executors is not None else self._spent_s

    @property
    def is_settled(self) -> bool:
        """Whether as many executors take tasks as were requested."""
        return self.alive == self.requested

    def note_busy(self, busy: Mapping[str, float | None]) -> None:
        """Note the busy share of each query; what is unknown stays as it was."""
        self._busy |= {name: share for name, share in busy.items() if share is not None}

    def begin(self, now: float) -> None:
        """Start counting."""
        self._updated_at = now
        if self._executors is not None:
            self._executors.begin(now)

    def update(self, shares: Mapping[str, int], now: float, *, is_between: bool) -> list[Event]:
        """Count executors, and let their number follow the shares of queries.

        Executors are released only between two batches (`is_between`): one that leaves under a
        shuffle takes the output of finished tasks along.
        """
        self._spent_s += self.alive * (now - self._updated_at)
        self._updated_at = now
        events: list[Event] = []
        if self._executors is not None and self._host is not None:
            self._host.update()
            events = self._executors.update(now)
        self.alive = self._count()
        return [*events, *self.resize(shares, now, is_between=is_between)]

    def resize(
        self, shares: Mapping[str, int], now: float, *, is_between: bool = False
    ) -> list[Event]:
        """Request more executors at once, or fewer if no batch runs."""
        if self._executors is None or not shares:
            return []
        (low, high), (fewest, most) = self.bounds, count_executors(shares, self._busy)
        # without evidence nothing is changed
        needed = min(max(self._executors.requested, fewest), most)
        needed = min(high, max(low, needed))
        self.is_releasing = needed < self._executors.requested
        if self.is_releasing and not is_between:
            return []
        events = self._executors.resize(needed, now)
        return [_add_needs(event, shares) for event in events]

    def assign(self, shares: Mapping[str, int]) -> dict[str, int]:
        """Return the share of each query in the executors that there are.

        They are the requested shares if these are there; several small queries may share one.
        """
        fewest, most = count_executors(shares, self._busy)
        if fewest <= self.alive <= most and len(shares) > 1:
            return dict(shares)
        return split_executors(max(1, self.alive), shares)

    @property
    def has_leaving(self) -> bool:
        """Whether executors that were sent home have still to be ended."""
        return self._host is not None and self._host.has_leaving

    def finish_release(self) -> None:
        """End executors that were sent home and are idle by now."""
        if self._host is not None:
            self._host.update()


def _add_needs(event: Event, shares: Mapping[str, int]) -> Event:
    if isinstance(event, ExecutorsRequestedEvent):
        return replace(event, needs=describe_needs(shares))
    return event
