"""Vocabulary of events: names, channels with their URLs, a pool of letters.

The reference draws URLs and pool in every process. Here they are fixed, drawn by the same rules.
Other tables can be given, to compare with a stream that was generated with them.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.nexmark.random_text import words
from penstock.nexmark.splitmix import Draws, Ints
from penstock.pipelines.text_columns import join, pc, word_list

FIRST_NAMES = word_list("Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter")
LAST_NAMES = word_list("Shultz Abrams Spencer White Bartels Walton Smith Jones Noris")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
    "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
STATES = word_list("AZ CA ID OR WA WY")
#: Half of all bids come through these; the others through as many as there are others.
HOT_CHANNELS = word_list("Google Facebook Baidu Apple")
OTHER_CHANNELS = 10_000
CHANNELS = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(OTHER_CHANNELS))])

_POOL_SIZE = 1 << 20
#: Seeds of the built-in tables, far from each other and from ids of events.
_URL_SEED, _POOL_SEED = 1 << 50, 1 << 51
_LETTERS_OF_A_DRAW = 6


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """URLs in the order of channels, and the pool that texts are parts of."""

    urls: pa.Array
    pool: NDArray[np.uint8]


@cache
def builtin_tables() -> Tables:
    """Draw the built-in tables."""
    return Tables(urls=_urls(), pool=_pool())


def channel_ids(numbers: Ints) -> NDArray[np.int32]:
    """Return the id that stands in the URL of each other channel: its number, bits reversed.

    >>> channel_ids(np.arange(5)).tolist()
    [0, -2147483648, 1073741824, 1073741824, 536870912]
    """
    places = np.arange(32)
    bits = numbers[:, None] >> places & 1
    reversed_ = (bits << (31 - places)).sum(axis=1).astype(np.uint32)
    # as in the reference, the least of all numbers has no absolute value
    ids: NDArray[np.int32] = np.abs(reversed_.view(np.int32))
    return ids


def _urls() -> pa.Array:
    numbers = np.arange(len(CHANNELS)) - len(HOT_CHANNELS)
    draws = Draws(numbers + _URL_SEED)
    folders = [words(draws, 5, gap="_") for _ in range(3)]
    plain = join("https://www.nexmark.com/", *(part for each in folders for part in (each, "/")))
    plain = join(plain, "item.htm?query=1")
    named = (draws.below(10) > 0) & (numbers >= 0)
    ids = pc.cast(pa.array(channel_ids(np.maximum(numbers, 0))), pa.string())
    return pc.if_else(pa.array(named), join(plain, "&channel_id=", ids), plain)


def _pool() -> NDArray[np.uint8]:
    count = -(-_POOL_SIZE // _LETTERS_OF_A_DRAW)
    left = Draws(np.arange(count) + _POOL_SEED).bits().view(np.int32).astype(np.int64)
    letters = np.empty((count, _LETTERS_OF_A_DRAW), np.uint8)
    for place in range(_LETTERS_OF_A_DRAW):
        # remainders have the sign of what was divided: half of the letters lie before "a"
        rest = np.fmod(left, 26)
        letters[:, place] = ord("a") + rest
        left = (left - rest) // 26
    return letters.reshape(-1)[:_POOL_SIZE]
