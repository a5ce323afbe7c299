"""Persons, auctions and bids with all their fields, for many events at once."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.nexmark.event_order import AUCTIONS, BIDS, ROUND, last_auction, last_person
from penstock.nexmark.random_text import extras, words
from penstock.nexmark.settings import StreamSettings, timestamps
from penstock.nexmark.splitmix import Draws, Ints, Rows
from penstock.nexmark.vocabulary import (
    CHANNELS,
    CITIES,
    FIRST_NAMES,
    HOT_CHANNELS,
    LAST_NAMES,
    OTHER_CHANNELS,
    STATES,
)
from penstock.pipelines.text_columns import choose, join, pc
from penstock.topics.schema import parse_schema

#: The first id of persons and of auctions.
FIRST_NUMBER = 1000
#: The number of active persons and of open auctions.
ACTIVE_PERSONS, OPEN_AUCTIONS = 1000, 100
#: Events may refer to this many future persons or auctions.
_LEAD = 10
#: One in this many is hot, until the next one.
_HOT_EVERY = 100


def hot_person(ids: Ints) -> Ints:
    """Return the hot person at each event, who makes most auctions."""
    return last_person(ids) // _HOT_EVERY * _HOT_EVERY


def hot_auction(ids: Ints) -> Ints:
    """Return the hot auction at each event, which gets most bids."""
    return last_auction(ids) // _HOT_EVERY * _HOT_EVERY


def some_person(draws: Draws, ids: Ints, rows: Rows) -> Ints:
    """Draw an active person for the events of some rows."""
    known = last_person(ids[rows]) + 1
    active = np.minimum(known, ACTIVE_PERSONS)
    return known - active + draws.below(active + _LEAD, rows)


def some_auction(draws: Draws, ids: Ints, rows: Rows) -> Ints:
    """Draw an open auction for the events of some rows."""
    newest = last_auction(ids[rows])
    oldest = np.maximum(newest - OPEN_AUCTIONS, 0)
    return oldest + draws.below(newest - oldest + 1 + _LEAD, rows)


def hot_or(
    draws: Draws,
    ratio: int,
    ids: Ints,
    hot: Ints,
    cold: Callable[[Draws, Ints, Rows], Ints],
) -> Ints:
    """Return the hot id for all events but one in `ratio`, and a drawn id for the rest."""
    rest = np.flatnonzero(draws.below(ratio) == 0)
    hot[rest] = cold(draws, ids, rest)
    return hot


def prices(draws: Draws) -> Ints:
    """Draw prices in cents: each magnitude from a dollar to a million is equally likely."""
    return np.floor(10.0 ** (draws.uniform() * 6.0) * 100.0 + 0.5).astype(np.int64)


#: Target size of a person, and the size of its id.
_PERSON_BYTES, _ID_BYTES = 200, 8


def persons(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the persons of these events."""
    draws = Draws(ids)
    # in the order in which the reference draws them
    name = join(_choose(draws, FIRST_NAMES), " ", _choose(draws, LAST_NAMES))
    email = join(words(draws, 7), "@", words(draws, 5), ".com")
    card = pc.binary_join_element_wise(*(_four_digits(draws) for _ in range(4)), " ")
    city, state = _choose(draws, CITIES), _choose(draws, STATES)
    fixed_bytes = _ID_BYTES + sum(_lengths(text) for text in (name, email, card, city, state))
    return pa.table(
        {
            "id": FIRST_NUMBER + last_person(ids),
            "name": name,
            "emailAddress": email,
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": timestamps(setting.times_ms(ids)),
            "extra": extras(draws, setting.effective_tables().pool, _PERSON_BYTES, fixed_bytes),
        }
    )


def _choose(draws: Draws, choices: tuple[str, ...]) -> pa.Array:
    return choose(choices, draws.below(len(choices)))


def _four_digits(draws: Draws) -> pa.Array:
    return pc.ascii_lpad(pc.cast(pa.array(draws.below(10_000)), pa.string()), 4, "0")


def _lengths(texts: pa.Array) -> Ints:
    lengths: Ints = pc.binary_length(texts).to_numpy().astype(np.int64)
    return lengths


#: All auctions but one in this many are from a hot seller.
HOT_SELLERS = 4
FIRST_CATEGORY, CATEGORIES = 10, 5
#: Target size of an auction, and the size of its numeric fields.
_AUCTION_BYTES, _AUCTION_FIELD_BYTES = 500, 48
#: An auction is open for about as many events as it takes to open so many others.
_OPEN_EVENTS = OPEN_AUCTIONS * ROUND // AUCTIONS.share
_MAX_OPEN_MS = (1 << 31) - 1


def auctions(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the auctions of these events."""
    draws, at_ms = Draws(ids), setting.times_ms(ids)
    # in the order in which the reference draws them
    seller = hot_or(draws, setting.ratio(HOT_SELLERS), ids, hot_person(ids), some_person)
    category = FIRST_CATEGORY + draws.below(CATEGORIES)
    initial = prices(draws)
    usual_ms = setting.times_ms(ids, later=_OPEN_EVENTS) - at_ms
    length_ms = 1 + draws.below(np.clip(2 * usual_ms, 1, _MAX_OPEN_MS))
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
            "extra": extras(
                draws,
                setting.effective_tables().pool,
                _AUCTION_BYTES,
                _AUCTION_FIELD_BYTES + lengths,
            ),
        }
    )


#: All bids but one in this many are for a hot auction, or from a hot bidder.
HOT_AUCTIONS, HOT_BIDDERS = 2, 4
#: The reference adds the first id twice; results are compared with it, so this does, too.
_FIRST_BIDDER = 2 * FIRST_NUMBER
#: Target size of a bid, and the size of its numeric fields.
_BID_BYTES, _BID_FIELD_BYTES = 100, 32
#: The fields that `bid_fields` returns.
BID_FIELDS = ("auction", "bidder", "price", "dateTime")


def bids(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the bids of these events."""
    draws = Draws(ids)
    fields = _bid_fields(draws, ids, setting)
    tables = setting.effective_tables()
    channel = pa.array(_channels(draws))
    texts = {
        "channel": CHANNELS.take(channel),
        "url": tables.urls.take(channel),
        "extra": extras(draws, tables.pool, _BID_BYTES, _BID_FIELD_BYTES),
    }
    return pa.table(fields | texts).select(parse_schema(BIDS.schema).names)


def bid_fields(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the numeric and time fields of the bids of these events; much faster than `bids`."""
    return pa.table(_bid_fields(Draws(ids), ids, setting))


def _bid_fields(draws: Draws, ids: Ints, setting: StreamSettings) -> dict[str, Ints | pa.Array]:
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
