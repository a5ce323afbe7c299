"""The events of one subscription: an iterator that reconnects and misses nothing."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError
from penstock.extras import import_optional
from penstock.pubsub.client_content import ClientContent
from penstock.pubsub.event_stream import parse_events
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.service_error import explain_answer

#: Waits between attempts to reconnect: the first, and the longest.
MIN_WAIT_S, MAX_WAIT_S = 0.1, 2.0
#: A stream without even a comment for so long is dead.
SILENCE_S = 45.0
#: Answers after which trying again can help.
_TEMPORARY = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A publication that matched."""

    #: Its number; `Client.resume` continues behind it.
    publication: int
    content: dict[str, Any]


class MissedEventsError(PenstockError):
    """Events were removed before this subscriber came back for them."""


class Subscription:
    """Iterates over events; reconnects by itself behind the last one that was yielded.

    In an encrypted space two texts can have the same hash, so every event is compared with the
    predicate again after it was decrypted.
    """

    def __init__(
        self, http: Any, content: ClientContent, id: str, predicate: str, after: int
    ) -> None:
        self.id, self.predicate = id, predicate
        #: The publication behind which the next event is.
        self.after = after
        #: Events that the service sent and the predicate does not match.
        self.false_positives = 0
        self._http, self._content = http, content
        self._parsed = parse_predicate(predicate)
        self._is_closed = False

    def close(self) -> None:
        """End the iteration at the next event or reconnect; the subscription stays."""
        self._is_closed = True

    def __iter__(self) -> Iterator[Event]:
        """Yield events for ever."""
        httpx = import_optional("httpx", "penstock.pubsub.Client")
        wait_s = MIN_WAIT_S
        while not self._is_closed and not self._http.is_closed:
            before = self.after
            with suppress(httpx.TransportError):
                yield from self._follow(httpx)
            if self.after != before:
                wait_s = MIN_WAIT_S
            if not self._is_closed:
                time.sleep(wait_s)
            wait_s = min(2 * wait_s, MAX_WAIT_S)

    def _follow(self, httpx: Any) -> Iterator[Event]:
        """Yield the events of one connection."""
        timeout = httpx.Timeout(SILENCE_S, connect=5.0)
        params = {"subscription": self.id}
        headers = {"Last-Event-ID": str(self.after)}
        with self._http.stream(
            "GET", "/notifications", params=params, headers=headers, timeout=timeout
        ) as answer:
            if answer.status_code != 200:
                self._check_refusal(answer)
                return
            for event in parse_events(answer.iter_text()):
                if event.type == "notification":
                    yield from self._read(json.loads(event.data))
                if self._is_closed or event.type == "resume":
                    return

    def _read(self, notification: dict[str, Any]) -> Iterator[Event]:
        number = notification["publication"]
        if number <= self.after:
            return
        content = self._content.read_event(notification)
        if is_match(self._parsed, content):
            # before the yield: a consumer that stops here has had the event
            self.after = number
            yield Event(publication=number, content=content)
        else:
            self.false_positives += 1
            self.after = number

    def _check_refusal(self, answer: Any) -> None:
        error = explain_answer(answer.status_code, answer.read())
        if answer.status_code == 410:
            raise MissedEventsError(str(error))
        if answer.status_code not in _TEMPORARY:
            raise error
