"""A client for programs: publish, subscribe and get events, in plain and encrypted spaces.

>>> from penstock.pubsub import Client
>>> with Client("http://127.0.0.1:8080", token) as client:  # doctest: +SKIP
...     client.publish({"symbol": "ACME", "price": 12.5})
...     for event in client.subscribe("price > 10"):
...         print(event.content)
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.pubsub.client_content import EncryptedContent, PlainContent
from penstock.pubsub.service_error import ServiceError, explain_answer
from penstock.pubsub.spaces.space import ASPE, parse_space
from penstock.pubsub.spaces.space_key import SpaceKey, read_space_key
from penstock.pubsub.subscription import Subscription

_PURPOSE = "penstock.pubsub.Client"
_TIMEOUT_S = 30.0
#: Publications in one request of `publish_many`.
_MAX_LINES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """What became of many publications."""

    accepted: int
    #: The answer of the service for each refused one, by its place.
    refused: Mapping[int, Mapping[str, Any]]


class Client:
    """Talks to a publish/subscribe service; a key file makes and reads encrypted events."""

    def __init__(
        self,
        url: str,
        token: str,
        key: SpaceKey | Path | str | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        httpx = import_optional("httpx", _PURPOSE)
        self._errors = (httpx.HTTPError, httpx.InvalidURL)
        try:
            headers = {"Authorization": f"Bearer {token}"}
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s)
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise InputError("url or token", f"cannot be used: {error}") from None
        self._key = read_space_key(Path(key)) if isinstance(key, str | Path) else key
        self._content: PlainContent | EncryptedContent | None = None

    @property
    def content(self) -> PlainContent | EncryptedContent:
        """How events look in the space of the service; asked once."""
        if self._content is None:
            fields = self.request("GET", "/space")
            fields.pop("limits", None)
            space = parse_space(fields)
            if space.scheme != ASPE:
                self._content = PlainContent()
            elif self._key is None:
                raise InputError("key", "this space is encrypted: a key file is needed")
            elif self._key.space != space:
                raise InputError("key", "is for another space than that of the service")
            else:
                self._content = EncryptedContent(self._key)
        return self._content

    def publish(self, event: Mapping[str, Any]) -> None:
        """Publish one event; it is durable when this returns."""
        self.request("POST", "/publications", json=self.content.make_publication(event))

    def publish_many(self, events: Iterable[Mapping[str, Any]]) -> PublishResult:
        """Publish events in few requests.

        On Spark, several access points number publications, so that the events of a request may
        get their numbers in another order.
        """
        accepted, refused, place = 0, {}, 0
        rest = iter(events)
        while block := list(islice(rest, _MAX_LINES)):
            lines = "".join(
                json.dumps(fields) + "\n" for fields in self.content.make_publications(block)
            )
            headers = {"Content-Type": "application/x-ndjson"}
            text = self._send("POST", "/publications", content=lines, headers=headers).text
            for result in map(json.loads, filter(None, text.split("\n"))):
                if result["status"] == 202:
                    accepted += 1
                else:
                    refused[place + result["line"] - 1] = result
            place += len(block)
        return PublishResult(accepted=accepted, refused=refused)

    def subscribe(self, predicate: str, id: str | None = None) -> Subscription:
        """Subscribe and return an iterator of events, which resumes by itself."""
        fields = self.content.make_subscription(predicate)
        answer = self.request("POST", "/subscriptions", json={"id": id, **fields})
        return self._make_subscription(answer["id"], predicate, answer["after"])

    def resume(self, id: str, predicate: str, after: int | None = None) -> Subscription:
        """Return the events of a subscription that exists, behind a publication.

        `after` is the `publication` of the last event that was processed; without it, only new
        events come.
        """
        self.content.make_subscription(predicate)
        if after is None:
            after = self.request("GET", "/status")["notices"]["last_publication"]
        return self._make_subscription(id, predicate, after)

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription."""
        self.request("DELETE", f"/subscriptions/{id}")

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return the account's subscriptions with their states."""
        fields: list[dict[str, Any]] = self.request("GET", "/subscriptions")["subscriptions"]
        return fields

    def status(self) -> dict[str, Any]:
        """Return what the service and its engine are doing."""
        return self.request("GET", "/status")

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request and return the JSON object of the answer."""
        answer: dict[str, Any] = self._send(method, path, **options).json()
        return answer

    def close(self) -> None:
        """Close connections; iterators of subscriptions end."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make_subscription(self, id: str, predicate: str, after: int) -> Subscription:
        return Subscription(self._http, self.content, id, predicate, after)

    def _send(self, method: str, path: str, **options: Any) -> Any:
        try:
            answer = self._http.request(method, path, **options)
        except self._errors as error:
            problem = f"{self._http.base_url}: cannot be reached: {error}"
            raise ServiceError(None, problem, {}) from None
        if answer.status_code >= 400:
            raise explain_answer(answer.status_code, answer.content)
        return answer
