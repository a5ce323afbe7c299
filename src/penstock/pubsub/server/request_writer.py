"""Collects requests for some milliseconds and submits them together: each submit is an fsync."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError
from penstock.pubsub.broker import PublishRequest, Request, SubscribeRequest
from penstock.pubsub.server.broker_thread import BrokerThread
from penstock.pubsub.server.database import transaction
from penstock.pubsub.server.problem import ProblemError
from penstock.pubsub.server.subscription_store import SubscriptionRecord, SubscriptionStore

#: How long a request waits for others, and how many are submitted at once.
GATHER_S = 0.004
MAX_REQUESTS = 20_000

#: Changes the store within a transaction, on the broker's thread; returns the request for it.
Change = Callable[[SubscriptionStore], tuple[Request, SubscriptionRecord]]
_log = logging.getLogger(__name__)


class NotSubmittedError(Exception):
    """A change needs a request that the same batch is about to submit; it waits for the next."""


@dataclass(slots=True, kw_only=True)
class _Job:
    done: "asyncio.Future[Any]"
    publications: Sequence[PublishRequest] = ()
    change: Change | None = None


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """What became of the jobs of one batch."""

    results: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)


class RequestWriter:
    """The only task that submits requests; a caller waits until its request is durable."""

    def __init__(self, thread: BrokerThread, connection: sqlite3.Connection) -> None:
        self._thread, self._connection = thread, connection
        self._jobs: list[_Job] = []
        self._wake = asyncio.Event()
        self._is_closed = False
        #: Numbers of the batch that is being written.
        self._unsubmitted: set[int] = set()

    async def publish(self, requests: Sequence[PublishRequest]) -> None:
        """Submit publications, in this order."""
        await self._add(publications=requests)

    async def change(self, change: Change) -> SubscriptionRecord:
        """Change the store and submit the request for it."""
        record: SubscriptionRecord = await self._add(change=change)
        return record

    def is_submitted(self, number: int) -> bool:
        """Whether the request for a new subscription is durable; for changes, on the thread."""
        return number not in self._unsubmitted

    async def _add(self, **job: Any) -> Any:
        if self._is_closed:
            raise ProblemError(503, "the server is ending", headers={"Retry-After": "1"})
        done = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(done=done, **job))
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Write until `close`; everything accepted before is written."""
        while self._jobs or not self._is_closed:
            await self._wake.wait()
            if not self._is_closed:
                await asyncio.sleep(GATHER_S)
            self._wake.clear()
            while jobs := self._take_batch():
                await self._write_batch(jobs)

    def close(self) -> None:
        """Accept nothing more."""
        self._is_closed = True
        self._wake.set()

    def _take_batch(self) -> list[_Job]:
        count = size = 0
        for job in self._jobs:
            size += max(1, len(job.publications))
            if count and size > MAX_REQUESTS:
                break
            count += 1
        batch, self._jobs = self._jobs[:count], self._jobs[count:]
        return batch

    async def _write_batch(self, jobs: list[_Job]) -> None:
        try:
            outcome = await self._thread.run(lambda: self._write(jobs))
        except Exception as error:
            _log.exception("requests could not be submitted")
            refusal = _explain_failure(error)
            for job in jobs:
                if not job.done.done():
                    job.done.set_exception(refusal)
            return
        for place, job in enumerate(jobs):
            problem = outcome.errors.get(place)
            if isinstance(problem, NotSubmittedError):
                self._jobs.insert(0, job)
            elif job.done.done():  # its client has gone
                continue
            elif problem is not None:
                job.done.set_exception(problem)
            else:
                job.done.set_result(outcome.results.get(place))

    def _write(self, jobs: list[_Job]) -> _Outcome:
        """Store changes, then submit all requests; on the broker's thread.

        The store is first: a crash in between leaves subscriptions without a request, and the next
        start submits them. The other way round, a number could be given twice.
        """
        outcome = _Outcome()
        requests: dict[int, Sequence[Request]] = {}
        if any(job.change is not None for job in jobs):
            with transaction(self._connection):
                for place, job in enumerate(jobs):
                    if job.change is not None:
                        self._apply(place, job.change, requests, outcome)
        ordered = [
            request
            for place, job in enumerate(jobs)
            for request in requests.get(place, job.publications)
        ]
        try:
            if ordered:
                self._thread.broker.submit(ordered)
        except Exception:
            self._withdraw(ordered)
            raise
        finally:
            self._unsubmitted.clear()
        return outcome

    def _apply(
        self,
        place: int,
        change: Change,
        requests: dict[int, Sequence[Request]],
        outcome: _Outcome,
    ) -> None:
        self._connection.execute("SAVEPOINT change")
        try:
            request, outcome.results[place] = change(self._thread.store)
            requests[place] = (request,)
            if isinstance(request, SubscribeRequest):
                self._unsubmitted.add(request.number)
        except Exception as error:
            self._connection.execute("ROLLBACK TO change")
            outcome.errors[place] = error
        self._connection.execute("RELEASE change")

    def _withdraw(self, requests: Sequence[Request]) -> None:
        """Remove new subscriptions of a failed batch: their owners got 503.

        The engine may have taken some, so the next start submits the removals again.
        """
        numbers = [each.number for each in requests if isinstance(each, SubscribeRequest)]
        if numbers:
            with transaction(self._connection):
                self._thread.store.mark_removing(numbers)


def _explain_failure(error: Exception) -> ProblemError:
    problem = str(error) if isinstance(error, PenstockError) else "the engine does not answer"
    retry = {"Retry-After": "5"}
    return ProblemError(503, problem, hint="nothing was accepted; try again", headers=retry)
