"""What a server needs of the engine that matches: requests go in, acks and notices come out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.pubsub.spaces.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeRequest:
    """Add a subscription. Its number is new: numbers are never used again."""

    number: int
    #: Plain space: the predicate in UTF-8. Encrypted space: its tests, as `spaces/wire.py` has it.
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsubscribeRequest:
    """Remove a subscription."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """Match an event and hand it to its subscribers."""

    #: Plain space: a JSON object in UTF-8. Encrypted space: its vector, as `spaces/wire.py` has it.
    content: bytes
    #: What subscribers get; an encrypted space needs one, and only clients can read it.
    payload: bytes


Request = SubscribeRequest | UnsubscribeRequest | PublishRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """A change of subscriptions took effect, exactly before one publication."""

    number: int
    #: Whether the subscription is active from that publication on.
    is_active: bool
    #: The number of the first publication that saw the change.
    publication: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A publication that matched, with all matching subscriptions. Numbers of notices increase."""

    publication: int
    subscriptions: tuple[int, ...]
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that the access points refused; a server that checks requests sees none."""

    #: The subscription; None for a publication.
    number: int | None
    problem: str


class NoticesRemovedError(LookupError):
    """Notices behind a publication were removed by retention."""


class Broker(Protocol):
    """A running pub/sub engine, seen from a server. One thread at a time may call it."""

    @property
    def space(self) -> Space:
        """The space that all requests belong to."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Append requests, in this order; they survive a crash when this returns."""

    def read_acks(self, position: int) -> tuple[Sequence[Ack], int]:
        """Return acks from a position on, and the next position; 0 is the first one."""

    def read_refusals(self, position: int) -> tuple[Sequence[Refusal], int]:
        """Return refusals from a position on, and the next position; 0 is the first one."""

    def read_notices(self, position: int) -> tuple[Sequence[Notice], int]:
        """Return notices from a position on, in order of publications, and the next position."""

    def find_notices(self, publication: int) -> int:
        """Return the position of the notices behind a publication, for `read_notices`.

        `NoticesRemovedError` if some of them no longer exist.
        """
