"""Who and what an event is about: newest persons and auctions, the hot ones, and prices."""

from collections.abc import Callable

import numpy as np

from penstock.nexmark.event_order import last_auction, last_person
from penstock.nexmark.splitmix import Draws, Ints, Rows

#: What ids of persons and auctions begin with.
FIRST_NUMBER = 1000
#: Persons who still do something, auctions that are still open.
ACTIVE_PERSONS, OPEN_AUCTIONS = 1000, 100
#: So many are named before they are there.
_LEAD = 10
#: One in so many is the hot one, for a while.
_HOT_EVERY = 100


def hot_person(ids: Ints) -> Ints:
    """Return the person whom most auctions of that time are from."""
    return last_person(ids) // _HOT_EVERY * _HOT_EVERY


def hot_auction(ids: Ints) -> Ints:
    """Return the auction that most bids of that time are for."""
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
    """Return the hot one for all events but one in `ratio`, and draw another for the rest."""
    rest = np.flatnonzero(draws.below(ratio) == 0)
    hot[rest] = cold(draws, ids, rest)
    return hot


def prices(draws: Draws) -> Ints:
    """Draw prices in cents: each magnitude from a dollar to a million is as likely."""
    return np.floor(10.0 ** (draws.uniform() * 6.0) * 100.0 + 0.5).astype(np.int64)
