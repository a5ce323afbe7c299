"""Reads notifications in a thread, with bounded waits."""

import json
import queue
import threading
from types import TracebackType
from typing import Any

import httpx

from penstock.pubsub.event_stream import StreamEvent, parse_events

WAIT_S = 10.0


class Listener:
    """An open stream; `with Listener(client) as events: events.next()`."""

    def __init__(self, client: httpx.Client, path: str = "/notifications", **headers: str) -> None:
        self._events: queue.Queue[StreamEvent | None] = queue.Queue()
        self._client, self._path, self._headers = client, path, headers
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._answer: httpx.Response | None = None
        self.status = 0

    def _read(self) -> None:
        headers = {name.replace("_", "-"): value for name, value in self._headers.items()}
        try:
            with self._client.stream("GET", self._path, headers=headers) as answer:
                self._answer, self.status = answer, answer.status_code
                for event in parse_events(answer.iter_text()):
                    self._events.put(event)
        except (httpx.HTTPError, httpx.StreamError, OSError):
            pass
        self._events.put(None)

    def take(self) -> StreamEvent | None:
        """Return the next event of any type, None at the end of the stream."""
        return self._events.get(timeout=WAIT_S)

    def next(self) -> dict[str, Any]:
        """Return the next notification."""
        event = self.take()
        assert event is not None and event.type == "notification", event
        fields: dict[str, Any] = json.loads(event.data)
        assert event.id == str(fields["publication"])
        return fields

    def is_silent(self, seconds: float = 0.3) -> bool:
        """Whether nothing comes for a while."""
        try:
            return self._events.get(timeout=seconds) is None and False
        except queue.Empty:
            return True

    def __enter__(self) -> "Listener":
        self._thread.start()
        ready = self.take()
        assert ready is not None and ready.type == "ready", (self.status, ready)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # reading ends with the client, which the rig closes
        pass
