"""The service behind the routes: its tasks, its store, what it knows about the engine."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.pubsub.broker import Ack, Broker, Notice, NoticesRemovedError
from penstock.pubsub.server.broker_thread import BrokerThread
from penstock.pubsub.server.credentials import Account
from penstock.pubsub.server.database import open_database, transaction
from penstock.pubsub.server.limits import ServerLimits, TokenBucket
from penstock.pubsub.server.notice_dispatch import NoticeFeed, Owners
from penstock.pubsub.server.problem import ProblemError
from penstock.pubsub.server.rate_meter import RateMeter
from penstock.pubsub.server.request_writer import RequestWriter
from penstock.pubsub.server.subscription_store import SubscriptionStore
from penstock.pubsub.server.token_store import TokenStore

#: How often the engine is asked for news when there are none.
POLL_S = 0.03
#: After a failure of the engine.
_RETRY_S = 1.0
#: How often the position of the feed is saved; a restart reads again from there.
_SAVE_S = 1.0
_NOTICES, _PUBLICATION = "notices", "last_publication"
#: Behind all publications.
_END = 2**62

#: Describes the engine: hosts, operators, slices; must not block for long.
EngineStatus = Callable[[], dict[str, Any]]
_log = logging.getLogger(__name__)


class Service:
    """Everything that lives as long as the server; made and used on its event loop."""

    def __init__(
        self,
        broker: Broker,
        directory: Path,
        limits: ServerLimits,
        engine_status: EngineStatus = dict,
    ) -> None:
        self.space, self.limits, self.engine_status = broker.space, limits, engine_status
        self._connection = open_database(directory)
        # authentication reads on the event loop, beside the broker's thread
        self._reader: sqlite3.Connection = open_database(directory)
        self.tokens = TokenStore(self._reader)
        self.thread = BrokerThread(broker, SubscriptionStore(self._connection))
        self.writer = RequestWriter(self.thread, self._connection)
        self.feed = NoticeFeed(Owners({}), 0)
        self.published = RateMeter()
        self.started_s = time.monotonic()
        #: Requests that the server let pass and the engine did not.
        self.refused = 0
        #: Why the engine gives no news; empty if it does.
        self.problem = ""
        self.streams: dict[int, int] = {}
        self._buckets: dict[tuple[int, str], TokenBucket] = {}
        self._saved_s = 0.0
        self._is_closing = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Catch up with the engine, submit again what it has not confirmed, start the tasks."""
        await self.thread.run(self._recover)
        follow, write = self._follow(), self.writer.run()
        self._tasks = [asyncio.create_task(follow), asyncio.create_task(write)]

    async def stop(self) -> None:
        """Write what was accepted, save positions, close the store."""
        self._is_closing = True
        self.feed.end_all("shutdown")
        self.writer.close()
        await asyncio.gather(*self._tasks)
        await self.thread.run(self._save_feed)
        self.thread.close()
        self._connection.close()
        self._reader.close()

    def charge(self, account: Account, kind: str, count: int) -> float:
        """Take tokens of an account's bucket; the seconds to wait if there are too few."""
        per_s = getattr(self.limits, f"{kind}_per_s")
        now_s = time.monotonic()
        key = (account.number, kind)
        bucket = self._buckets.setdefault(key, TokenBucket(per_s, now_s))
        return bucket.take(count, now_s)

    def check_rate(self, account: Account, kind: str, count: int = 1) -> None:
        """Refuse a request with 429 if the account is too fast."""
        wait_s = self.charge(account, kind, count)
        if wait_s > 0:
            per_s = getattr(self.limits, f"{kind}_per_s")
            raise ProblemError(
                429,
                f"more than {per_s:g} {kind}/s",
                hint=f"wait {wait_s:.1f} s",
                headers={"Retry-After": str(int(wait_s) + 1)},
            )

    def _recover(self) -> None:
        """Bring the store up to date with the engine; on the broker's thread."""
        store, broker = self.thread.store, self.thread.broker
        while self._apply_acks(*broker.read_acks(store.read_position("acks"))):
            pass
        self._apply_refusals()
        if requests := store.unacknowledged():
            _log.info("submitting %d unconfirmed changes again", len(requests))
            broker.submit(requests)
        last = store.read_position(_PUBLICATION, -1)
        owners = Owners(store.read_owners())
        self.feed = NoticeFeed(owners, store.read_position(_NOTICES), last)
        while notices := self._read_notices():
            self.feed.dispatch(*notices)
        self._save_feed()

    def _apply_refusals(self) -> None:
        store, broker = self.thread.store, self.thread.broker
        refusals, position = broker.read_refusals(store.read_position("refusals"))
        if refusals:
            _log.warning("the engine refused %d requests: %s", len(refusals), refusals[0].problem)
            self.refused += len(refusals)
            with transaction(self._connection):
                store.apply_refusals(refusals, position)

    def _apply_acks(self, acks: Sequence[Ack], position: int) -> bool:
        if not acks:
            return False
        with transaction(self._connection):
            self.thread.store.apply_acks(acks, position)
        return True

    def _read_notices(self) -> tuple[Sequence[Notice], int] | None:
        """Return notices behind the feed and their end, None if there are none."""
        broker, start = self.thread.broker, self.feed.position
        try:
            notices, position = broker.read_notices(start)
        except NoticesRemovedError:
            notices, position = (), broker.find_notices(_END)
        return (notices, position) if position != start else None

    def _save_feed(self) -> None:
        self._saved_s = time.monotonic()
        store, feed = self.thread.store, self.feed
        if store.read_position(_NOTICES) != feed.position:
            with transaction(self._connection):
                store.save_position(_NOTICES, feed.position)
                store.save_position(_PUBLICATION, feed.last_publication)

    def _poll(self) -> tuple[bool, tuple[Sequence[Notice], int] | None]:
        broker, store = self.thread.broker, self.thread.store
        is_new = self._apply_acks(*broker.read_acks(store.read_position("acks")))
        if time.monotonic() > self._saved_s + _SAVE_S:
            self._apply_refusals()
            self._save_feed()
        return is_new, self._read_notices()

    async def _follow(self) -> None:
        """Read acks and notices until the service ends."""
        while not self._is_closing:
            wait_s = POLL_S
            try:
                is_new, notices = await self.thread.run(self._poll)
                if notices is not None:
                    self.feed.dispatch(*notices)
                if is_new or notices is not None:
                    wait_s = 0.0
                self.problem = ""
            except Exception as error:
                _log.exception("the engine gives no news")
                self.problem, wait_s = f"{type(error).__name__}: {error}", _RETRY_S
            await asyncio.sleep(wait_s)
