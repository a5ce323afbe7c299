"""One event after the other in plain Python: slow, and written apart from what it is compared with.

Times are left to the caller: `at` says in which millisecond the event of a number happens.
"""

import math
from collections.abc import Callable
from typing import Any

MASK = (1 << 64) - 1
POOL = 1 << 20
FIRST = [
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
]
LAST = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
CITIES = [
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
    "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
]  # fmt: skip
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
FAMOUS = ["Google", "Facebook", "Baidu", "Apple"]

Row = dict[str, Any]
At = Callable[[int], int]


class Source:
    """SplitMix with one seed."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def _mix(self, *rounds: tuple[int, int]) -> int:
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        for shift, factor in rounds:
            z = ((z ^ (z >> shift)) * factor) & MASK
        return z

    def bits(self) -> int:
        return self._mix((33, 0x62A9D9ED799705F5), (28, 0xCB24D0A5C88C35B3)) >> 32

    def uniform(self) -> float:
        z = self._mix((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        drawn = self.bits()
        if bound & (bound - 1) == 0:
            return drawn & (bound - 1)
        while True:
            half = drawn >> 1
            value = half % bound
            if half + bound - 1 - value < 1 << 31:
                return value
            drawn = self.bits()

    def price(self) -> int:
        return math.floor(math.pow(10.0, self.uniform() * 6.0) * 100.0 + 0.5)

    def word(self, size: int) -> str:
        letters = [
            " " if self.below(13) == 0 else chr(97 + self.below(26))
            for _ in range(3 + self.below(size - 3))
        ]
        return "".join(letters).strip(" ")

    def extra(self, pool: str, goal: int, held: int) -> str:
        room = goal - held
        if room < 0:
            return ""
        spread = math.floor(0.2 * room + 0.5)
        size = room - spread + (self.below(2 * spread) if spread else 0)
        begin = self.below(POOL - size)
        return pool[begin : begin + size]


def _last_auction(e: int) -> int:
    whole, rest = divmod(e, 50)
    return 3 * whole + min(rest - 1, 2) if rest >= 1 else 3 * whole - 1


def _some_person(source: Source, e: int) -> int:
    known = e // 50 + 1
    active = min(known, 1000)
    return known - active + source.below(active + 10)


def _some_auction(source: Source, e: int) -> int:
    newest = _last_auction(e)
    oldest = max(newest - 100, 0)
    return oldest + source.below(newest - oldest + 1 + 10)


def person(e: int, _hot: bool, at: At, pool: str, _urls: list[str]) -> Row:
    source = Source(e)
    name = f"{FIRST[source.below(11)]} {LAST[source.below(9)]}"
    email = f"{source.word(7)}@{source.word(5)}.com"
    card = " ".join(f"{source.below(10_000):04d}" for _ in range(4))
    city, state = CITIES[source.below(10)], STATES[source.below(6)]
    held = 8 + len(name) + len(email) + len(card) + len(city) + len(state)
    return {
        "id": 1000 + e // 50,
        "name": name,
        "emailAddress": email,
        "creditCard": card,
        "city": city,
        "state": state,
        "dateTime": at(e - 1),
        "extra": source.extra(pool, 200, held),
    }


def auction(e: int, hot: bool, at: At, pool: str, _urls: list[str]) -> Row:
    source = Source(e)
    is_hot = source.below(4 if hot else 1) > 0
    seller = e // 50 // 100 * 100 if is_hot else _some_person(source, e)
    category, initial = 10 + source.below(5), source.price()
    now = at(e - 1)
    length = 1 + source.below(max(2 * (at(e - 1 + 1666) - now), 1))
    item, description = source.word(20), source.word(100)
    reserve = initial + source.price()
    return {
        "id": 1000 + _last_auction(e),
        "itemName": item,
        "description": description,
        "initialBid": initial,
        "reserve": reserve,
        "dateTime": now,
        "expires": now + length,
        "seller": 1000 + seller,
        "category": category,
        "extra": source.extra(pool, 500, 48 + len(item) + len(description)),
    }


def bid(e: int, hot: bool, at: At, pool: str, urls: list[str]) -> Row:
    source = Source(e)
    is_hot = source.below(2 if hot else 1) > 0
    item = _last_auction(e) // 100 * 100 if is_hot else _some_auction(source, e)
    is_hot = source.below(4 if hot else 1) > 0
    bidder = e // 50 // 100 * 100 + 1 if is_hot else _some_person(source, e)
    price = source.price()
    famous = source.below(2) > 0
    number = source.below(4) if famous else source.below(10_000)
    return {
        "auction": 1000 + item,
        "bidder": 2000 + bidder,
        "price": price,
        "channel": FAMOUS[number] if famous else f"channel-{number}",
        "url": urls[number] if famous else urls[4 + number],
        "dateTime": at(e - 1),
        "extra": source.extra(pool, 100, 32),
    }


def event(e: int, *rest: Any) -> Row:
    """Make the event of an id."""
    place = e % 50
    return (person if place == 0 else auction if place <= 3 else bid)(e, *rest)
