"""Bids, with all their fields, or with numbers and times only, which is much quicker."""

import numpy as np
import pyarrow as pa

from penstock.nexmark.choices import (
    FIRST_NUMBER,
    hot_auction,
    hot_or,
    hot_person,
    prices,
    some_auction,
    some_person,
)
from penstock.nexmark.event_order import BIDS
from penstock.nexmark.random_text import extras
from penstock.nexmark.settings import StreamSettings, timestamps
from penstock.nexmark.splitmix import Draws, Ints
from penstock.nexmark.vocabulary import CHANNELS, HOT_CHANNELS, OTHER_CHANNELS
from penstock.topics.schema import parse_schema

#: All bids but one in so many are for a hot auction, from a hot bidder.
HOT_AUCTIONS, HOT_BIDDERS = 2, 4
#: The reference adds what ids begin with twice, and so does everything that is compared with it.
_FIRST_BIDDER = 2 * FIRST_NUMBER
#: Bytes of a bid as it should be on average, and of its numbers.
_GOAL, _NUMBERS = 100, 32
#: What `bid_numbers` returns.
NUMBERS = ("auction", "bidder", "price", "dateTime")


def bids(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the bids of these events."""
    draws = Draws(ids)
    numbers = _numbers(draws, ids, setting)
    tables = setting.the_tables()
    channel = pa.array(_channels(draws))
    texts = {
        "channel": CHANNELS.take(channel),
        "url": tables.urls.take(channel),
        "extra": extras(draws, tables.pool, _GOAL, _NUMBERS),
    }
    return pa.table(numbers | texts).select(parse_schema(BIDS.schema).names)


def bid_numbers(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return numbers and times of the bids of these events."""
    return pa.table(_numbers(Draws(ids), ids, setting))


def _numbers(draws: Draws, ids: Ints, setting: StreamSettings) -> dict[str, Ints | pa.Array]:
    # in the order in which the reference draws them
    auction = hot_or(draws, setting.ratio(HOT_AUCTIONS), ids, hot_auction(ids), some_auction)
    bidder = hot_or(draws, setting.ratio(HOT_BIDDERS), ids, hot_person(ids) + 1, some_person)
    return {
        "auction": FIRST_NUMBER + auction,
        "bidder": _FIRST_BIDDER + bidder,
        "price": prices(draws),
        "dateTime": timestamps(setting.times_ms(ids)),
    }


def _channels(draws: Draws) -> Ints:
    hot = draws.below(2) > 0
    others, famous = np.flatnonzero(~hot), np.flatnonzero(hot)
    channel = np.empty(len(draws), np.int64)
    channel[famous] = draws.below(len(HOT_CHANNELS), famous)
    channel[others] = len(HOT_CHANNELS) + draws.below(OTHER_CHANNELS, others)
    return channel
