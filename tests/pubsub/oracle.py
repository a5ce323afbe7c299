"""What subscribers must get: brute force over all publications and subscriptions.

Subscription 0 matches everything, so every publication has a notice, which tells its number.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.pubsub.broker import (
    Ack,
    Notice,
    PublishRequest,
    Request,
    SubscribeRequest,
    UnsubscribeRequest,
)
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.space import Space, parse_space
from penstock.pubsub.spaces.space_key import SpaceKey, make_space_key
from penstock.pubsub.spaces.wire import encode_tests, encode_vectors

ATTRIBUTES = {
    "price": {"low": 0, "high": 100, "step": 0.5},
    "volume": {"low": 0, "high": 50, "step": 1},
    "symbol": {"text": True},
}
#: About so many subscriptions are active at once, so that brute force stays quick.
MANY = 60
EVERYTHING = "price >= 0 OR NOT EXISTS price"


def make_key(scheme: str) -> SpaceKey:
    """A space of ticks, and its key."""
    space = parse_space({"format": 1, "scheme": scheme, "attributes": ATTRIBUTES})
    return make_space_key(space, np.random.default_rng(7).bytes)


@dataclass
class Traffic:
    """Draws requests, and remembers what they mean."""

    key: SpaceKey
    seed: int = 0
    #: Predicates by subscription, and publications by id.
    predicates: dict[int, str] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    active: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._encoder = self.key.make_encoder(np.random.default_rng(self.seed).bytes)

    @property
    def space(self) -> Space:
        return self.key.space

    def subscribe(self, text: str) -> SubscribeRequest:
        """Ask for a new subscription."""
        number = len(self.predicates)
        self.predicates[number] = text
        self.active.add(number)
        encoder = self._encoder
        is_encrypted = isinstance(encoder, AspeEncoder)
        content = encode_tests(encoder.encode_subscription(text)) if is_encrypted else text.encode()
        return SubscribeRequest(number=number, content=content)

    def unsubscribe(self, number: int) -> UnsubscribeRequest:
        """Ask for its end."""
        self.active.discard(number)
        return UnsubscribeRequest(number=number)

    def publish(self) -> PublishRequest:
        """Draw an event; its payload is its id."""
        draw = self._random
        event: dict[str, Any] = {"price": draw.randrange(201) / 2, "volume": draw.randrange(51)}
        event["symbol"] = draw.choice("ABCDE")
        if draw.random() < 0.2:
            del event[draw.choice(["price", "volume", "symbol"])]
        self.events.append(event)
        payload = str(len(self.events) - 1).encode()
        if isinstance(self._encoder, AspeEncoder):
            (content,) = encode_vectors(self._encoder.encode_publications([event]))
        else:
            content = json.dumps(event).encode()
        return PublishRequest(content=content, payload=payload)

    def draw_predicate(self) -> str:
        """A predicate with a few matches."""
        draw = self._random
        low = draw.randrange(180) / 2
        parts = [f"price BETWEEN {low} AND {low + draw.randrange(30)}"]
        if draw.random() < 0.5:
            parts.append(f"volume {draw.choice(['<', '>=', '='])} {draw.randrange(1, 50)}")
        if draw.random() < 0.5:
            parts.append(f"symbol IN ('{draw.choice('ABC')}', '{draw.choice('CDE')}')")
        text = " AND ".join(parts)
        return f"({text}) OR volume = {draw.randrange(51)}" if draw.random() < 0.3 else text

    def draw_requests(self, publications: int, changes: int) -> list[Request]:
        """Publications with changes of subscriptions in between."""
        draw = self._random
        requests: list[Request] = []
        kinds = ["publish"] * publications + ["change"] * changes
        draw.shuffle(kinds)
        for kind in kinds:
            old = sorted(self.active - {0})
            if kind == "publish":
                requests.append(self.publish())
            elif old and draw.random() < (0.4 if len(old) < MANY else 0.6):
                requests.append(self.unsubscribe(draw.choice(old)))
            else:
                requests.append(self.subscribe(self.draw_predicate()))
        return requests


def check_notices(traffic: Traffic, acks: Sequence[Ack], notices: Sequence[Notice]) -> int:
    """Compare with brute force; returns how many pairs matched."""
    numbers = [notice.publication for notice in notices]
    assert numbers == sorted(set(numbers)), "notices are out of order, or twice"
    ids = [int(notice.payload) for notice in notices]
    assert sorted(ids) == list(range(len(traffic.events))), "publications are missing, or twice"
    check_acks(traffic, acks)
    intervals = find_intervals(acks)
    parsed = {number: parse_predicate(text) for number, text in traffic.predicates.items()}
    matched = 0
    for notice, event_id in zip(notices, ids, strict=True):
        event = traffic.events[event_id]
        expected = sorted(
            number
            for number, (begin, end) in intervals.items()
            if begin <= notice.publication < end and is_match(parsed[number], event)
        )
        assert sorted(notice.subscriptions) == expected, f"publication {notice.publication}"
        matched += len(expected)
    return matched


def check_acks(traffic: Traffic, acks: Iterable[Ack]) -> None:
    """Every change has exactly one ack."""
    changes = [(ack.number, ack.is_active) for ack in acks]
    removed = set(traffic.predicates) - traffic.active
    expected = [(number, True) for number in traffic.predicates]
    expected += [(number, False) for number in removed]
    assert sorted(changes) == sorted(expected)


def find_intervals(acks: Iterable[Ack]) -> dict[int, tuple[int, float]]:
    """The first publication that a subscription sees, and the first that it does not."""
    begins = {ack.number: ack.publication for ack in acks if ack.is_active}
    ends = {ack.number: ack.publication for ack in acks if not ack.is_active}
    return {number: (begin, ends.get(number, float("inf"))) for number, begin in begins.items()}
