"""The order of events: of every fifty the first is a person, then three auctions, then 46 bids.

Events of each kind are numbered separately, so that each kind can be a topic: row 7 of the bids is
the bid of one fixed event. Rows are counted from the first event of the stream.

>>> BIDS.ids(0, 3).tolist(), AUCTIONS.ids(0, 3).tolist(), PERSONS.ids(0, 3).tolist()
([4, 5, 6], [2, 3, 51], [50, 100, 150])
>>> BIDS.rows_within(0, 1_000_000), AUCTIONS.rows_within(10, 50)
((0, 920000), (2, 3))
"""

from dataclasses import dataclass

import numpy as np

from penstock.nexmark.splitmix import Ints

#: The pattern of kinds repeats after this many ids.
ROUND = 50
#: The id of event 0: the reference skips the first two.
FIRST_ID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKind:
    """A kind of event: its position in the pattern, and its columns."""

    name: str
    #: Its first position in each round, and the number of its events.
    begin: int
    share: int
    #: Columns in Spark's DDL; the names are the reference's.
    schema: str

    def ids(self, first: int, end: int) -> Ints:
        """Return the event ids of rows first, ..., end - 1."""
        numbers = np.arange(first, end, dtype=np.int64) + self._before(FIRST_ID)
        return numbers // self.share * ROUND + self.begin + numbers % self.share

    def rows_within(self, first: int, end: int) -> tuple[int, int]:
        """Return the first row and the end of the rows that events first, ..., end - 1 hold."""
        skipped = self._before(FIRST_ID)
        return self._before(FIRST_ID + first) - skipped, self._before(FIRST_ID + end) - skipped

    def _before(self, event_id: int) -> int:
        rounds, place = divmod(event_id, ROUND)
        return rounds * self.share + min(max(place - self.begin, 0), self.share)


PERSONS = EventKind(
    name="persons",
    begin=0,
    share=1,
    schema="id long, name string, emailAddress string, creditCard string, city string, "
    "state string, dateTime timestamp, extra string",
)
AUCTIONS = EventKind(
    name="auctions",
    begin=1,
    share=3,
    schema="id long, itemName string, description string, initialBid long, reserve long, "
    "dateTime timestamp, expires timestamp, seller long, category long, extra string",
)
BIDS = EventKind(
    name="bids",
    begin=4,
    share=46,
    schema="auction long, bidder long, price long, channel string, url string, "
    "dateTime timestamp, extra string",
)
KINDS = {kind.name: kind for kind in (PERSONS, AUCTIONS, BIDS)}


def last_person(ids: Ints) -> Ints:
    """Return the number of the newest person when each event happens, or of itself."""
    return ids // ROUND


def last_auction(ids: Ints) -> Ints:
    """Return the number of the newest auction when each event happens, or of itself."""
    opened = np.clip(ids % ROUND - AUCTIONS.begin + 1, 0, AUCTIONS.share)
    return ids // ROUND * AUCTIONS.share + opened - 1
