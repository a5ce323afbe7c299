"""The partitions of queries that may be started again: how many run, and changes in progress."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.engines.attached.restart.query_restarter import QueryRestarter
from penstock.engines.events import Event, FailedEvent
from penstock.errors import RescaleError


@dataclass(slots=True, kw_only=True)
class ElasticMember:
    """One query, what changes it, and the numbers of partitions that it may have."""

    elastic: ElasticQuery
    restarter: QueryRestarter
    #: Returns why the query cannot be started with another number; "" if it can.
    explain_refusal: Callable[[], str] = lambda: ""
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = self.elastic.bounds

    def exclude(self, wanted: int, running: int) -> None:
        """Never request this number again, nor one behind it in the same direction."""
        if wanted > running:
            self.high = max(running, min(self.high, wanted - 1))
        elif wanted < running:
            self.low = min(running, max(self.low, wanted + 1))


class RestartLevel:
    """Changes queries in threads, one change per query at a time."""

    def __init__(
        self, members: Mapping[str, ElasticMember], enter_thread: Callable[[], None] = lambda: None
    ) -> None:
        """`enter_thread` is called first in every thread."""
        self.members, self._enter_thread = members, enter_thread
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._failures: list[Event] = []

    def begin(self) -> None:
        """Verify the queries that have just been started."""
        for name, member in self.members.items():
            self._run(name, partial(self._adopt, member))

    def request(self, name: str, wanted: int) -> None:
        """Begin a change; `RescaleError` if it is impossible now."""
        member = self.members[name]
        if self.is_busy(name):
            raise RescaleError(f"{name} is being started again")
        if not member.low <= wanted <= member.high:
            bounds = f"{member.low} to {member.high}"
            raise RescaleError(f"{name} did not start with such numbers before, {bounds} remain")
        if reason := member.explain_refusal():
            raise RescaleError(f"{name} keeps its partitions: {reason}")
        self._run(name, partial(self._change, member, wanted))

    def is_busy(self, name: str) -> bool:
        """Whether a query is verified or changed."""
        return name in self._threads

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._failures = self._failures, []
        for member in self.members.values():
            while member.restarter.events:
                events.append(member.restarter.events.popleft())
        return sorted(events, key=lambda event: event.at)

    def finish(self, patience_s: float) -> None:
        """Begin no change by itself any more, and wait for changes in progress."""
        for member in self.members.values():
            member.restarter.is_leaving = True
        deadline = time.monotonic() + patience_s
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    # --- in a thread for each query

    def _adopt(self, member: ElasticMember) -> None:
        member.restarter.adopt(member.elastic.partitions, member.elastic.bounds)

    def _change(self, member: ElasticMember, wanted: int) -> None:
        running = member.restarter.change(member.elastic.partitions, wanted)
        if running and running != wanted:
            member.exclude(wanted, running)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(
            target=self._work, args=(name, work), name=f"penstock-{name}", daemon=True
        )
        with self._lock:
            self._threads[name] = thread
        thread.start()

    def _work(self, name: str, work: Callable[[], None]) -> None:
        try:
            self._enter_thread()
            work()
        except Exception as error:  # any kind: other queries go on
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self._failures.append(FailedEvent(at=time.time(), operator=name, error=text))
        finally:
            with self._lock:
                del self._threads[name]
