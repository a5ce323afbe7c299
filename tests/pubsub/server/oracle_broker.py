"""A broker by brute force: every predicate is evaluated on every publication."""

import json
from collections.abc import Sequence

import numpy as np

from penstock.pubsub.broker import (
    Ack,
    Notice,
    NoticesRemovedError,
    PublishRequest,
    Request,
    SubscribeRequest,
)
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.spaces.space import ASPE, Space
from penstock.pubsub.spaces.wire import decode_tests, decode_vector


class OracleBroker:
    """Keeps all in memory; `hold` delays acks and notices, `failures` lets submits fail."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.submitted: list[list[Request]] = []
        self.is_held = False
        self.failures: list[Exception] = []
        self.removed_up_to = -1
        self._waiting: list[Request] = []
        self._live: dict[int, bytes] = {}
        self._publications = 0
        self._acks: list[Ack] = []
        self._notices: list[Notice] = []

    def submit(self, requests: Sequence[Request]) -> None:
        """Keep requests, or fail."""
        if self.failures:
            raise self.failures.pop()
        self.submitted.append(list(requests))
        self._waiting += requests
        if not self.is_held:
            self.release()

    def release(self) -> None:
        """Process all that was submitted."""
        self.is_held = False
        for request in self._waiting:
            self._process(request)
        self._waiting = []

    def _process(self, request: Request) -> None:
        if isinstance(request, PublishRequest):
            numbers = [n for n, content in self._live.items() if self._matches(content, request)]
            if numbers:
                notice = Notice(
                    publication=self._publications,
                    subscriptions=tuple(numbers),
                    payload=request.payload,
                )
                self._notices.append(notice)
            self._publications += 1
            return
        is_active = isinstance(request, SubscribeRequest)
        if isinstance(request, SubscribeRequest):
            self._live[request.number] = request.content
        else:
            self._live.pop(request.number, None)
        at = self._publications
        self._acks.append(Ack(number=request.number, is_active=is_active, publication=at))

    def _matches(self, content: bytes, request: PublishRequest) -> bool:
        if self.space.scheme == ASPE:
            attributes = len(self.space.paths)
            products = decode_tests(content, attributes) @ decode_vector(
                request.content, attributes
            )
            return bool(np.any(np.all(products > 0, axis=1)))
        return is_match(parse_predicate(content.decode()), json.loads(request.content))

    def read_acks(self, position: int) -> tuple[Sequence[Ack], int]:
        """Return acks from a position on."""
        return self._acks[position:], len(self._acks)

    def read_refusals(self, position: int) -> tuple[Sequence[object], int]:
        """Return nothing: an oracle refuses nothing."""
        return (), position

    def read_notices(self, position: int) -> tuple[Sequence[Notice], int]:
        """Return at most seven notices, so that readers have to continue."""
        notices = self._notices[position : position + 7]
        return notices, position + len(notices)

    def find_notices(self, publication: int) -> int:
        """Return the position behind a publication."""
        if publication < self.removed_up_to:
            raise NoticesRemovedError
        return sum(notice.publication <= publication for notice in self._notices)
