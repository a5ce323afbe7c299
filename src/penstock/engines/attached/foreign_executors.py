"""Executors of an application that was not started by Penstock: request, warm up, release.

With Spark's default settings an executor that is decommissioned gets no more tasks, but stays for
ever and counts: asking for more brings nothing. So it is killed once it is idle, and the total is
requested again, because a kill lowers it.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol


class ExecutorCalls(Protocol):
    """Calls to Spark; see `spark_executors.SparkExecutors`."""

    def alive(self) -> dict[str, bool]:
        """Return the live executors, oldest first, and whether each one stays."""

    def request_total(self, total: int) -> None:
        """Request this many executors in total."""

    def release(self, names: Iterable[str]) -> None:
        """Decommission these executors: they get no more tasks."""

    def count_active_tasks(self) -> Mapping[str, int]:
        """Return the tasks that run on each executor."""

    def kill(self, names: Iterable[str]) -> None:
        """End these executors at once."""

    def warm_up(self, names: Iterable[str]) -> None:
        """Run a short job on these executors, in the background."""


class ForeignExecutors:
    """Provides executors to `engines/spark/cluster/executors.py`. `update` it often."""

    def __init__(self, calls: ExecutorCalls, *, exits_alone: bool) -> None:
        """`exits_alone` if Spark ends decommissioned executors (`spark.decommission.enabled`)."""
        self._calls, self._exits_alone = calls, exits_alone
        self._total: int | None = None
        self._known = set(calls.alive())
        self._leaving: set[str] = set()

    def alive(self) -> Mapping[str, bool]:
        """Return the live executors, oldest first, and whether each one stays."""
        return self._calls.alive()

    def request_total(self, total: int) -> None:
        """Request this many executors in total."""
        self._total = total
        self._calls.request_total(total)

    def warm_up_new(self, new_ids: Iterable[int]) -> None:
        """Nothing yet: `update` warms executors up when they register.

        In a session with the default `spark.locality.wait` a task waits only seconds for the
        executor that it is bound to, and executors take longer to start.
        """

    def release(self, names: Iterable[str]) -> None:
        """Decommission these executors; each exits when its tasks are done."""
        leaving = list(names)
        self._calls.release(leaving)
        if not self._exits_alone:
            self._leaving.update(leaving)

    @property
    def has_leaving(self) -> bool:
        """Whether decommissioned executors have still to be ended."""
        return bool(self._leaving)

    def update(self) -> None:
        """Warm up executors that have registered; end decommissioned ones that are idle."""
        alive = self._calls.alive()
        new = [name for name in alive if name not in self._known]
        self._known.update(new)
        if new:
            self._calls.warm_up(new)
        self._leaving &= alive.keys()
        if self._leaving:
            self._kill_idle()

    def _kill_idle(self) -> None:
        active = self._calls.count_active_tasks()
        idle = [name for name in sorted(self._leaving) if active.get(name) == 0]
        if not idle:
            return
        self._calls.kill(idle)
        self._leaving -= set(idle)
        if self._total is not None:  # a kill lowers the total that Spark keeps up
            self._calls.request_total(self._total)
