"""Executors follow the replicas: how many are requested, how many are alive, and their cost."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from penstock.core.executors import ExecutorRules, Fleet, resize_fleet
from penstock.engines.events import (
    Event,
    ExecutorLostEvent,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
)
from penstock.errors import InputError


class ExecutorHost(Protocol):
    """Provides executors; see `executor_client.ExecutorClient`."""

    def alive(self) -> Mapping[str, bool]:
        """Return the live executors, oldest first, and whether each one stays (is not released)."""

    def request_total(self, total: int) -> None:
        """Request this many executors in total."""

    def warm_up_new(self, new_ids: Iterable[int]) -> None:
        """Start workers on the executors that will get these ids, as soon as they register."""

    def release(self, names: Iterable[str]) -> None:
        """Release these executors; each exits when its tasks are done."""


class Executors:
    """Scales the executors with the replicas. Times are wall-clock seconds."""

    def __init__(self, host: ExecutorHost, rules: ExecutorRules, first: int) -> None:
        """`first` executors are running or starting."""
        self._host, self._given_rules, self._rules = host, rules, rules
        self._fleet = Fleet(target=first)
        #: Live executors, and their total seconds; a released one counts until it exits.
        self.alive = 0
        self.executor_s = 0.0
        self._staying = 0
        #: The highest executor id so far; Spark numbers executors in the order of their start.
        self._newest = -1
        self._updated_at: float | None = None
        #: When the current number was requested; None once it is reached.
        self._requested_at: float | None = None
        self._is_returning = False

    @property
    def requested(self) -> int:
        """The requested number of executors."""
        return self._fleet.target

    def begin(self, now: float) -> None:
        """Start counting executor seconds."""
        self._count()
        self._updated_at, self.executor_s = now, 0.0

    def keep(self, least: int) -> None:
        """Set the minimum number of executors, for any number of replicas."""
        low, high = self._given_rules.low, self._given_rules.high
        if not low <= least <= high:
            raise InputError("executors", f"must be from {low} to {high}, got {least}")
        self._rules = replace(self._given_rules, low=least)

    def resize(self, replicas: int, now: float) -> list[Event]:
        """Request executors before a scale-up; release them after a scale-down."""
        before = self._fleet.target
        self._fleet, why = resize_fleet(self._fleet, replicas, now, self._rules)
        if self._fleet.target == before:
            return []
        starting = max(0, before - self._staying)
        self._warm_up_new(self._fleet.target - before, starting)
        self._host.request_total(self._fleet.target)
        self._release_surplus()
        self._requested_at, self._is_returning = now, self._fleet.target < before
        return [
            ExecutorsRequestedEvent(
                at=now,
                alive=self.alive,
                requested=self._fleet.target,
                before=before,
                reason=str(why),
            )
        ]

    def _warm_up_new(self, new_ids: int, starting: int = 0) -> None:
        first = self._newest + 1 + starting
        if new_ids > 0:
            self._host.warm_up_new(range(first, first + new_ids))

    def _release_surplus(self) -> None:
        """Release the newest surplus executors: the oldest have the most idle workers."""
        staying = [name for name, stays in self._host.alive().items() if stays]
        if len(staying) > self.requested:
            self._host.release(staying[self.requested :])

    def update(self, now: float) -> list[Event]:
        """Count executors; return events when the requested number is reached or one is lost."""
        before, alive_before = self._staying, self.alive
        self._count()
        if self.alive < alive_before:
            # when an executor exits Spark forgets which waiting tasks are bound to which executor
            self._warm_up_new(self.requested - self._staying)
        if self._updated_at is not None:
            self.executor_s += self.alive * (now - self._updated_at)
        self._updated_at = now
        if self._staying > self.requested:
            self._release_surplus()  # it was starting when fewer were requested
        if self._requested_at is None:
            return self._report_loss(now) if self._staying < min(before, self.requested) else []
        is_there = self._staying == self.requested
        if not is_there or (self._is_returning and self.alive > self.requested):
            return []
        after_s, self._requested_at = round(now - self._requested_at, 3), None
        requested = self.requested
        return [ExecutorsReadyEvent(at=now, alive=self.alive, requested=requested, after_s=after_s)]

    def _count(self) -> None:
        alive = self._host.alive()
        self.alive, self._staying = len(alive), sum(alive.values())
        self._newest = max([self._newest, *map(int, alive)])

    def _report_loss(self, now: float) -> list[Event]:
        """Report a lost executor; Spark starts another one by itself."""
        self._requested_at = now
        return [ExecutorLostEvent(at=now, alive=self.alive, requested=self.requested)]
