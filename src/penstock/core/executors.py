"""The number of executors that a sum of replicas needs.

Decisions are about replicas, and executors follow. A missing executor delays every batch, a spare
one costs little. So executors are requested together with the replicas, and released only after
fewer have been enough for `delay_s`.
"""

from dataclasses import dataclass
from enum import StrEnum

from penstock.core.numbers import NOISE


class ExecutorReason(StrEnum):
    """The reason for a number of executors: a stable word and a sentence for people."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> "ExecutorReason":
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    ENOUGH = "enough", "the replicas fit"
    MORE_REPLICAS = "more-replicas", "the replicas need more room"
    NEEDED_LATELY = "needed-lately", "fewer are needed, but not for long enough"
    FEWER_FOR_LONG = "fewer-for-long", "fewer have been enough for a while"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRules:
    """Bounds, room and delay of the executors."""

    low: int
    high: int
    #: Replicas that one executor has room for.
    cores: int
    #: Seconds for which fewer must be enough before some are released.
    delay_s: float = 15.0

    def needed(self, replicas: int) -> int:
        """Return the executors that have room for so many replicas, within the bounds.

        >>> rules = ExecutorRules(low=1, high=4, cores=2)
        >>> rules.needed(5), rules.needed(50)
        (3, 4)
        """
        return min(self.high, max(self.low, -(-replicas // self.cores)))

    @property
    def room(self) -> int:
        """The most replicas that all executors together have room for."""
        return self.high * self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The wanted number of executors, and the memory that a release needs."""

    target: int
    #: Time since which fewer are enough; None while all are needed.
    lower_since: float | None = None
    #: The most that were needed since then.
    most: int = 0


def resize_fleet(
    fleet: Fleet, replicas: int, at: float, rules: ExecutorRules
) -> tuple[Fleet, ExecutorReason]:
    """Return the wanted number of executors from now on, and the reason.

    It is never below the largest need of the last `delay_s`.
    """
    needed = rules.needed(replicas)
    if needed >= fleet.target:
        is_same = needed == fleet.target
        reason = ExecutorReason.ENOUGH if is_same else ExecutorReason.MORE_REPLICAS
        return Fleet(target=needed), reason
    if fleet.lower_since is None:
        return Fleet(target=fleet.target, lower_since=at, most=needed), ExecutorReason.NEEDED_LATELY
    most = max(fleet.most, needed)
    if at - fleet.lower_since < rules.delay_s - NOISE:
        waiting = Fleet(target=fleet.target, lower_since=fleet.lower_since, most=most)
        return waiting, ExecutorReason.NEEDED_LATELY
    since = at if needed < most else None
    return Fleet(target=most, lower_since=since, most=needed), ExecutorReason.FEWER_FOR_LONG
