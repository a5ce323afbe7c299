"""Executors that follow the replicas: how many are asked for, how many live, what they cost."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from penstock.core.executors import Fleet, Rules, follow
from penstock.engines.events import (
    Event,
    ExecutorLostEvent,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
)
from penstock.errors import InputError


class ExecutorHost(Protocol):
    """What gives executors and takes them back; see `cluster.py`."""

    def alive(self) -> Mapping[str, bool]:
        """Those that are there, oldest first, and whether each stays or is about to leave."""

    def ask_for(self, total: int) -> None:
        """Ask for so many in all."""

    def welcome(self, newcomers: Iterable[int]) -> None:
        """Let those who will have these numbers warm up when they come."""

    def send_home(self, names: Iterable[str]) -> None:
        """Let these leave when their tasks are done."""


class Executors:
    """The second level of elasticity. Times are those of the wall clock."""

    def __init__(self, room: ExecutorHost, rules: Rules, first: int) -> None:
        """So many are there already, or on their way."""
        self._room, self._asked, self._rules = room, rules, rules
        self._fleet = Fleet(target=first)
        #: How many live, and the seconds of all together; one that leaves counts until it is gone.
        self.alive = 0
        self.executor_s = 0.0
        self._staying = 0
        #: The highest number that an executor had; they are numbered as they are started.
        self._newest = -1
        self._looked: float | None = None
        #: When the present number was asked for; None once it is there.
        self._asked_at: float | None = None
        self._is_returning = False

    @property
    def requested(self) -> int:
        """How many there shall be."""
        return self._fleet.target

    def begin(self, now: float) -> None:
        """Count from here on."""
        self._count()
        self._looked, self.executor_s = now, 0.0

    def keep(self, least: int) -> None:
        """Have so many at least, however few replicas there are."""
        low, high = self._asked.low, self._asked.high
        if not low <= least <= high:
            raise InputError("executors", f"must be from {low} to {high}, got {least}")
        self._rules = replace(self._asked, low=least)

    def follow(self, replicas: int, now: float) -> list[Event]:
        """Ask for what so many replicas need, or return what they have not needed for long."""
        before = self._fleet.target
        self._fleet, why = follow(self._fleet, replicas, now, self._rules)
        if self._fleet.target == before:
            return []
        on_their_way = max(0, before - self._staying)
        self._welcome(self._fleet.target - before, on_their_way)
        self._room.ask_for(self._fleet.target)
        self._send_home()
        self._asked_at, self._is_returning = now, self._fleet.target < before
        return [
            ExecutorsRequestedEvent(
                at=now,
                alive=self.alive,
                requested=self._fleet.target,
                before=before,
                reason=str(why),
            )
        ]

    def _welcome(self, newcomers: int, on_their_way: int = 0) -> None:
        first = self._newest + 1 + on_their_way
        if newcomers > 0:
            self._room.welcome(range(first, first + newcomers))

    def _send_home(self) -> None:
        """Let the youngest leave that are too many: the oldest have the most workers that wait."""
        staying = [name for name, stays in self._room.alive().items() if stays]
        if len(staying) > self.requested:
            self._room.send_home(staying[self.requested :])

    def look(self, now: float) -> list[Event]:
        """Count; tell when as many are there as were asked for, or when one was lost."""
        before, there = self._staying, self.alive
        self._count()
        if self.alive < there:
            # when one goes Spark forgets for whom the tasks are that wait
            self._welcome(self.requested - self._staying)
        if self._looked is not None:
            self.executor_s += self.alive * (now - self._looked)
        self._looked = now
        if self._staying > self.requested:
            self._send_home()  # it was on its way when fewer were asked for
        if self._asked_at is None:
            return self._lost(now) if self._staying < min(before, self.requested) else []
        is_there = self._staying == self.requested
        if not is_there or (self._is_returning and self.alive > self.requested):
            return []
        after_s, self._asked_at = round(now - self._asked_at, 3), None
        requested = self.requested
        return [ExecutorsReadyEvent(at=now, alive=self.alive, requested=requested, after_s=after_s)]

    def _count(self) -> None:
        found = self._room.alive()
        self.alive, self._staying = len(found), sum(found.values())
        self._newest = max([self._newest, *map(int, found)])

    def _lost(self, now: float) -> list[Event]:
        """One died; Spark starts another by itself."""
        self._asked_at = now
        return [ExecutorLostEvent(at=now, alive=self.alive, requested=self.requested)]
