"""How many executors a sum of replicas needs: bought at once, returned after a delay.

Decisions are about replicas; executors follow. One that is missing delays every batch, one too
many costs a little: so more are asked for in the moment in which replicas are, and fewer only
when fewer have been enough for a while.
"""

from dataclasses import dataclass
from enum import StrEnum

from penstock.core.numbers import NOISE


class Why(StrEnum):
    """Why there shall be so many executors: a stable word, with a sentence for people."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> "Why":
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    ENOUGH = "enough", "the replicas fit"
    MORE_REPLICAS = "more-replicas", "the replicas need more room"
    NEEDED_LATELY = "needed-lately", "fewer are needed, but not for long enough"
    FEWER_FOR_LONG = "fewer-for-long", "fewer have been enough for a while"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the number of executors keeps to."""

    low: int
    high: int
    #: Replicas that one executor has room for.
    cores: int
    #: Seconds for which fewer must have been enough.
    delay_s: float = 15.0

    def needed(self, replicas: int) -> int:
        """Executors that have room for so many replicas, as far as the bounds let them.

        >>> Rules(low=1, high=4, cores=2).needed(5), Rules(low=1, high=4, cores=2).needed(50)
        (3, 4)
        """
        return min(self.high, max(self.low, -(-replicas // self.cores)))

    @property
    def room(self) -> int:
        """Replicas for which there can be room at most."""
        return self.high * self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How many executors there shall be, and what must be remembered to return some."""

    target: int
    #: Since when fewer have been enough; None while all are needed.
    lower_since: float | None = None
    #: The most that were needed since then.
    most: int = 0


def follow(fleet: Fleet, replicas: int, at: float, rules: Rules) -> tuple[Fleet, Why]:
    """Return how many executors there shall be from now on, and why.

    Never fewer than were needed at any moment of the last `delay_s`.
    """
    needed = rules.needed(replicas)
    if needed >= fleet.target:
        return Fleet(target=needed), Why.ENOUGH if needed == fleet.target else Why.MORE_REPLICAS
    if fleet.lower_since is None:
        return Fleet(target=fleet.target, lower_since=at, most=needed), Why.NEEDED_LATELY
    most = max(fleet.most, needed)
    if at - fleet.lower_since < rules.delay_s - NOISE:
        waiting = Fleet(target=fleet.target, lower_since=fleet.lower_since, most=most)
        return waiting, Why.NEEDED_LATELY
    since = at if needed < most else None
    return Fleet(target=most, lower_since=since, most=needed), Why.FEWER_FOR_LONG
