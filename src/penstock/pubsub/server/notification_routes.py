"""GET /notifications: server-sent events, resumed by the number of the last publication."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.pubsub.broker import NoticesRemovedError
from penstock.pubsub.server.authentication import authenticate_subscriber, get_service
from penstock.pubsub.server.credentials import Account
from penstock.pubsub.server.json_body import dump_json
from penstock.pubsub.server.notice_dispatch import NoticeQueue, Notification
from penstock.pubsub.server.problem import ProblemError
from penstock.pubsub.server.service import Service
from penstock.pubsub.spaces.space import ASPE

MEDIA_TYPE = "text/event-stream"
#: Seconds between comments that keep a quiet connection open.
PING_S = 15
_MAX_PUBLICATION = 2**62
#: Notifications in one chunk.
_MAX_CHUNK = 256


async def get_notifications(request: Request) -> Response:
    """Open a stream of the account's notifications."""
    account = authenticate_subscriber(request)
    service = get_service(request)
    last = service.feed.last_publication
    after = _read_after(request, last)
    if request.method == "HEAD":
        return Response(media_type=MEDIA_TYPE)
    if service.streams.get(account.number, 0) >= service.limits.max_streams:
        problem = f"the account has {service.limits.max_streams} open streams"
        raise ProblemError(429, problem, hint="close one first", headers={"Retry-After": "5"})
    try:
        position = await service.thread.run(lambda: service.thread.broker.find_notices(after))
    except NoticesRemovedError:
        problem = f"notifications behind publication {after} were removed"
        hint = f"some are lost; continue with after={last}"
        raise ProblemError(410, problem, place="Last-Event-ID", hint=hint, after=last) from None
    wanted = frozenset(request.query_params.getlist("subscription"))
    queue = NoticeQueue(account.number, after, wanted, service.limits.max_queue)
    events = _generate_events(service, queue, position)
    return StreamResponse(service, account, events)


def _read_after(request: Request, last: int) -> int:
    """Return the publication to resume behind: the header, the query, or the newest one."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if text is None:
        return last
    try:
        after = int(text)
    except ValueError:
        after = -2
    if not -1 <= after <= _MAX_PUBLICATION:
        problem = "must be the number of a publication, or -1 for all"
        raise ProblemError(400, problem, place="Last-Event-ID")
    if after > last:
        problem = f"publication {after} is newer than all notifications of this service"
        raise ProblemError(400, problem, place="Last-Event-ID", hint=f"the newest is {last}")
    return after


class StreamResponse(EventSourceResponse):
    """A stream of events that counts as one of its account while it is open."""

    def __init__(self, service: Service, account: Account, events: AsyncIterator[bytes]) -> None:
        timeout_s = service.limits.send_timeout_s
        super().__init__(events, ping=PING_S, send_timeout=timeout_s, sep="\n")
        self._service, self._account = service, account

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client goes, is too slow, or the server ends."""
        streams, number = self._service.streams, self._account.number
        streams[number] = streams.get(number, 0) + 1
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            pass  # a client that takes nothing gets no last event; it resumes
        finally:
            streams[number] -= 1
            if not streams[number]:
                del streams[number]


async def _generate_events(
    service: Service, queue: NoticeQueue, position: int
) -> AsyncIterator[bytes]:
    yield _encode_event("ready", queue.last, {"after": queue.last})
    feed, is_encrypted = service.feed, service.space.scheme == ASPE
    # first what is stored, then live; in between nothing awaits, so nothing is missed
    while position < feed.position:
        start = position
        try:
            stored, position = await _read_stored(service, queue, start)
        except NoticesRemovedError:  # meanwhile; a client that reconnects gets 410
            yield _encode_resume("removed", queue.last)
            return
        for part in _encode_parts(stored, is_encrypted):
            yield part
        if position <= start:
            break
    sent = queue.last
    feed.open(queue)
    try:
        while taken := await queue.take():
            for part in _encode_parts(taken, is_encrypted):
                yield part
            sent = taken[-1].publication
        yield _encode_resume(queue.end_reason, sent)
    finally:
        feed.close(queue)


async def _read_stored(
    service: Service, queue: NoticeQueue, position: int
) -> tuple[Sequence[Notification], int]:
    """Return stored notifications for a stream, and the next position."""
    read = service.thread.broker.read_notices
    notices, end = await service.thread.run(lambda: read(position))
    stored = NoticeQueue(queue.account, queue.last, queue.wanted, len(notices) + 1)
    for notice in notices:
        for notification in service.feed.owners.group(notice, (queue.account,)).values():
            stored.offer(notification)
    queue.last = stored.last
    return stored.take_waiting(), end


def _encode_parts(notifications: Sequence[Notification], is_encrypted: bool) -> Iterator[bytes]:
    for first in range(0, len(notifications), _MAX_CHUNK):
        part = notifications[first : first + _MAX_CHUNK]
        yield b"".join(each.encode(is_encrypted) for each in part)


def _encode_resume(reason: str, sent: int) -> bytes:
    return _encode_event("resume", sent, {"reason": reason, "after": sent})


def _encode_event(event: str, id: int, fields: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (id, event.encode(), dump_json(fields))
