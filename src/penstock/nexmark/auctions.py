"""Auctions, with all their fields."""

import numpy as np
import pyarrow as pa

from penstock.nexmark.choices import (
    FIRST_NUMBER,
    OPEN_AUCTIONS,
    hot_or,
    hot_person,
    prices,
    some_person,
)
from penstock.nexmark.event_order import AUCTIONS, ROUND, last_auction
from penstock.nexmark.random_text import extras, words
from penstock.nexmark.settings import StreamSettings, timestamps
from penstock.nexmark.splitmix import Draws, Ints
from penstock.pipelines.text_columns import pc

#: All auctions but one in so many are from a hot seller.
HOT_SELLERS = 4
FIRST_CATEGORY, CATEGORIES = 10, 5
#: Bytes of an auction as it should be on average, and of its numbers.
_GOAL, _NUMBERS = 500, 48
#: An auction is open for about as many events as it takes to open so many others.
_OPEN_EVENTS = OPEN_AUCTIONS * ROUND // AUCTIONS.share
_LONGEST_MS = (1 << 31) - 1


def auctions(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the auctions of these events."""
    draws, at_ms = Draws(ids), setting.times_ms(ids)
    # in the order in which the reference draws them
    seller = hot_or(draws, setting.ratio(HOT_SELLERS), ids, hot_person(ids), some_person)
    category = FIRST_CATEGORY + draws.below(CATEGORIES)
    initial = prices(draws)
    usual_ms = setting.times_ms(ids, later=_OPEN_EVENTS) - at_ms
    length_ms = 1 + draws.below(np.clip(2 * usual_ms, 1, _LONGEST_MS))
    item, description = words(draws, 20), words(draws, 100)
    reserve = initial + prices(draws)
    lengths = pc.add(pc.binary_length(item), pc.binary_length(description)).to_numpy()
    return pa.table(
        {
            "id": FIRST_NUMBER + last_auction(ids),
            "itemName": item,
            "description": description,
            "initialBid": initial,
            "reserve": reserve,
            "dateTime": timestamps(at_ms),
            "expires": timestamps(at_ms + length_ms),
            "seller": FIRST_NUMBER + seller,
            "category": category,
            "extra": extras(draws, setting.the_tables().pool, _GOAL, _NUMBERS + lengths),
        }
    )
