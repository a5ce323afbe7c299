"""Reads new notices once and hands them to the open streams of their subscribers."""

import asyncio
import base64
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pubsub.broker import Notice
from penstock.pubsub.server.json_body import dump_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A publication for one account, with those of its subscriptions that it matches."""

    publication: int
    subscriptions: tuple[str, ...]
    payload: bytes

    def encode(self, is_encrypted: bool) -> bytes:
        """Return the event as server-sent events have it."""
        fields: dict[str, Any] = {
            "publication": self.publication,
            "subscriptions": self.subscriptions,
        }
        data = dump_json(fields)[:-1]
        if is_encrypted:
            data += b',"payload":"' + base64.b64encode(self.payload) + b'"}'
        else:
            # a plain payload is compact JSON, which has no line breaks
            data += b',"event":' + self.payload + b"}"
        return b"id: %d\nevent: notification\ndata: %s\n\n" % (self.publication, data)


class Owners:
    """Who owns which subscription, by number."""

    def __init__(self, owners: dict[int, tuple[int, str]]) -> None:
        self._owners = owners

    def add(self, number: int, account: int, id: str) -> None:
        """Note a new subscription."""
        self._owners[number] = (account, id)

    def group(self, notice: Notice, accounts: Collection[int]) -> dict[int, Notification]:
        """Return what a notice is for each of some accounts."""
        ids: dict[int, list[str]] = {}
        for number in notice.subscriptions:
            account, id = self._owners.get(number, (-1, ""))
            if account in accounts:
                ids.setdefault(account, []).append(id)
        return {
            account: Notification(
                publication=notice.publication,
                # an id that was removed and given again can be there twice
                subscriptions=tuple(dict.fromkeys(names)),
                payload=notice.payload,
            )
            for account, names in ids.items()
        }


class NoticeQueue:
    """What waits for one open stream; it ends when its reader is too slow."""

    def __init__(self, account: int, after: int, wanted: frozenset[str], max_size: int) -> None:
        self.account, self.last = account, after
        self.wanted, self._max_size = wanted, max_size
        self._waiting: deque[Notification] = deque()
        self._wake = asyncio.Event()
        #: Why no more notifications come; empty while they do.
        self.end_reason = ""

    def offer(self, notification: Notification) -> None:
        """Add a notification unless the stream has had it or does not want it."""
        if self.end_reason or notification.publication <= self.last:
            return
        if self.wanted and not self.wanted.intersection(notification.subscriptions):
            return
        if len(self._waiting) >= self._max_size:
            self.end("slow")
            return
        self.last = notification.publication
        self._waiting.append(notification)
        self._wake.set()

    def end(self, reason: str) -> None:
        """Let the stream end after what waits already."""
        self.end_reason = self.end_reason or reason
        self._wake.set()

    async def take(self) -> Sequence[Notification]:
        """Return all that wait, at least one; nothing at the end."""
        while not self._waiting and not self.end_reason:
            self._wake.clear()
            await self._wake.wait()
        return self.take_waiting()

    def take_waiting(self) -> Sequence[Notification]:
        """Return all that wait now."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


class NoticeFeed:
    """The position behind the newest notice, and the open streams."""

    def __init__(self, owners: Owners, position: int, last_publication: int = -1) -> None:
        self.owners, self.position = owners, position
        #: The newest publication that matched something.
        self.last_publication = last_publication
        self.notices = self.notifications = 0
        self._queues: set[NoticeQueue] = set()
        self._end_reason = ""

    def dispatch(self, notices: Sequence[Notice], position: int) -> None:
        """Hand new notices to the open streams."""
        self.position = position
        if notices:
            self.last_publication = max(self.last_publication, notices[-1].publication)
        self.notices += len(notices)
        by_account: dict[int, list[NoticeQueue]] = {}
        for queue in self._queues:
            by_account.setdefault(queue.account, []).append(queue)
        if not by_account:
            return
        for notice in notices:
            for account, notification in self.owners.group(notice, by_account).items():
                self.notifications += 1
                for queue in by_account[account]:
                    queue.offer(notification)

    def open(self, queue: NoticeQueue) -> None:
        """Add a stream; it gets what `dispatch` sees from now on."""
        self._queues.add(queue)
        if self._end_reason:
            queue.end(self._end_reason)

    def close(self, queue: NoticeQueue) -> None:
        """Forget a stream."""
        self._queues.discard(queue)

    def end_all(self, reason: str) -> None:
        """Let all streams end, also those that open later."""
        self._end_reason = reason
        for queue in self._queues:
            queue.end(reason)
