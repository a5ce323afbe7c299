"""The demo: stock ticks, three subscribers, a load that rises and falls, checked by brute force."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError
from penstock.pubsub.client import Client
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.spaces.space import Space, parse_space
from penstock.pubsub.subscription import Subscription

SYMBOLS = ("ACME", "BOLT", "COIL", "DYNE", "EDGE", "FLUX")
PREDICATES = {
    "cheap": "symbol = 'ACME' AND price < 95",
    "large": "volume >= 900",
    "watch": "symbol IN ('BOLT', 'COIL') AND price BETWEEN 90 AND 110",
}
#: Time between two requests of the publisher, and between two samples.
STEP_S, SAMPLE_S = 0.25, 1.0
#: How long the engine may take to start, and the last events to arrive.
START_S, DRAIN_S = 240.0, 60.0


def demo_space() -> Space:
    """Return the attributes of ticks."""
    attributes: dict[str, Any] = {"symbol": {"text": True}, "price": {}, "volume": {}}
    return parse_space({"format": 1, "scheme": "plain", "attributes": attributes})


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSpec:
    """How long, how fast, which ticks."""

    seconds: float = 60.0
    base_per_s: float = 1.0
    peak_per_s: float = 2000.0
    seed: int = 1

    def rate(self, at_s: float) -> float:
        """Return the offered ticks/s: low for a tenth, 2 tenths up, 3 high, one down, 3 low.

        >>> spec = DemoSpec(seconds=50, base_per_s=10, peak_per_s=110)
        >>> [spec.rate(at_s) for at_s in (0, 5, 10, 15, 30, 32.5, 35, 50)]
        [10.0, 10.0, 60.0, 110.0, 110.0, 60.0, 10.0, 10.0]
        """
        part = 10 * at_s / self.seconds
        share = max(0.0, min(1.0, (part - 1) / 2, 7 - part))
        return self.base_per_s + share * (self.peak_per_s - self.base_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberSample:
    """One subscriber at one moment."""

    name: str
    predicate: str
    events: int
    #: The median of the latest delays from publish to event.
    delay_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSample:
    """The demo at one moment."""

    at_s: float
    offered_per_s: float
    published: int
    subscribers: tuple[SubscriberSample, ...]
    #: As `GET /status` has it.
    engine: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What came out, beside what brute force says."""

    published: int
    events: Mapping[str, int]
    missing: Mapping[str, int]
    extra: Mapping[str, int]
    delay_p50_s: float
    delay_p95_s: float
    #: The number of hosts at each moment; empty without hosts.
    hosts: tuple[int, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether every subscriber got exactly its events, each once."""
        return not any((*self.missing.values(), *self.extra.values()))


@dataclass(slots=True)
class _Subscriber:
    """Collects the events of one subscription in a thread."""

    name: str
    subscription: Subscription
    ticks: list[int] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)

    def collect(self) -> None:
        for event in self.subscription:
            self.ticks.append(event.content["tick"])
            self.delays_s.append(time.time() - event.content["sent"])

    def sample(self) -> SubscriberSample:
        latest = sorted(self.delays_s[-50:])
        return SubscriberSample(
            name=self.name,
            predicate=self.subscription.predicate,
            events=len(self.ticks),
            delay_s=latest[len(latest) // 2] if latest else None,
        )


def run_demo(
    spec: DemoSpec,
    connect: Callable[[], Client],
    show: Callable[[DemoSample], None],
    say: Callable[[str], None],
) -> DemoResult:
    """Subscribe, publish for the length of the demo, wait for the last events, compare."""
    with connect() as client:
        subscribers = [
            _Subscriber(name, connect().subscribe(text)) for name, text in PREDICATES.items()
        ]
        threads = [threading.Thread(target=each.collect, daemon=True) for each in subscribers]
        for thread in threads:
            thread.start()
        say("subscribed; waiting for the engine to confirm")
        _wait_until(START_S, lambda: _are_active(client), "the engine did not start")
        hosts: list[int] = []

        def note(sample: DemoSample) -> None:
            hosts.extend([len(sample.engine["hosts"])] if sample.engine.get("hosts") else [])
            show(sample)

        published = _publish(spec, client, connect, subscribers, note)
        expected = {
            each.name: {
                tick["tick"]
                for tick in published
                if is_match(parse_predicate(each.subscription.predicate), tick)
            }
            for each in subscribers
        }
        deadline_s = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline_s and any(
            len(each.ticks) < len(expected[each.name]) for each in subscribers
        ):
            time.sleep(0.1)
        for each in subscribers:
            each.subscription.close()
    return _compare(len(published), subscribers, expected, hosts)


def _publish(
    spec: DemoSpec,
    client: Client,
    connect: Callable[[], Client],
    subscribers: list[_Subscriber],
    show: Callable[[DemoSample], None],
) -> list[dict[str, Any]]:
    ticks, published = _draw_ticks(random.Random(spec.seed)), []
    began_s = sampled_s = time.monotonic()
    status: deque[Mapping[str, Any]] = deque([{}], maxlen=1)
    threading.Thread(target=_follow_status, args=(connect(), status), daemon=True).start()
    owed = 0.0
    while (at_s := time.monotonic() - began_s) < spec.seconds:
        owed += spec.rate(at_s) * STEP_S
        block = [next(ticks) | {"sent": time.time()} for _ in range(int(owed))]
        owed -= len(block)
        if client.publish_many(block).accepted != len(block):
            raise PenstockError("the service refused a tick")
        published += block
        if time.monotonic() - sampled_s >= SAMPLE_S:
            sampled_s += SAMPLE_S
            sample = DemoSample(
                at_s=at_s,
                offered_per_s=spec.rate(at_s),
                published=len(published),
                subscribers=tuple(each.sample() for each in subscribers),
                engine=status[0],
            )
            show(sample)
        next_s = began_s + (int(at_s / STEP_S) + 1) * STEP_S
        time.sleep(max(0.0, next_s - time.monotonic()))
    return published


def _draw_ticks(chance: random.Random) -> Iterator[dict[str, Any]]:
    prices = dict.fromkeys(SYMBOLS, 100.0)
    number = 0
    while True:
        symbol = chance.choice(SYMBOLS)
        # a walk that is drawn back to 100
        step = chance.gauss(0, 1.5) + 0.05 * (100 - prices[symbol])
        prices[symbol] = round(prices[symbol] + step, 2)
        volume = chance.randrange(1000)
        yield {"tick": number, "symbol": symbol, "price": prices[symbol], "volume": volume}
        number += 1


def _follow_status(client: Client, status: deque[Mapping[str, Any]]) -> None:
    while True:
        try:
            status.append(client.status()["engine"])
        except PenstockError:
            return
        time.sleep(SAMPLE_S)


def _are_active(client: Client) -> bool:
    return all(each["state"] == "active" for each in client.subscriptions())


def _wait_until(timeout_s: float, is_true: Callable[[], bool], problem: str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > deadline_s:
            raise PenstockError(f"{problem} within {timeout_s:g} s")
        time.sleep(0.2)


def _compare(
    published: int,
    subscribers: list[_Subscriber],
    expected: Mapping[str, set[int]],
    hosts: Sequence[int],
) -> DemoResult:
    delays = sorted(delay for each in subscribers for delay in each.delays_s) or [0.0]
    return DemoResult(
        published=published,
        events={each.name: len(each.ticks) for each in subscribers},
        missing={each.name: len(expected[each.name] - set(each.ticks)) for each in subscribers},
        extra={
            each.name: len(each.ticks) - len(set(each.ticks) & expected[each.name])
            for each in subscribers
        },
        delay_p50_s=delays[len(delays) // 2],
        delay_p95_s=delays[min(len(delays) - 1, int(0.95 * len(delays)))],
        hosts=tuple(hosts),
    )
