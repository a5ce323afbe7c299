"""What can be chosen about the stream; by itself it is the reference's."""

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.nexmark.event_order import FIRST_ID
from penstock.nexmark.splitmix import Ints
from penstock.nexmark.times import Clock, FixedRate
from penstock.nexmark.vocabulary import Tables, own_tables
from penstock.topics.ddl import TIMESTAMP

#: Midnight of 15 July 2015 in UTC, a multiple of every window's size.
BASE_MS = 1_436_918_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """A stream of events."""

    #: Whether a few sellers, auctions and bidders get most of it. The thesis has none such.
    hot: bool = True
    clock: Clock = field(default_factory=FixedRate)
    base_ms: int = BASE_MS
    #: URLs and letters; None stands for our own, so that a setting stays small on its way.
    tables: Tables | None = None

    def ratio(self, of: int) -> int:
        """Return the ratio of the hot ones: all but one in `of` are hot, or none is."""
        return of if self.hot else 1

    def times_ms(self, ids: Ints, later: int = 0) -> Ints:
        """Return when the events happen, or those that are so many events later."""
        return self.base_ms + self.clock.after_us(ids - FIRST_ID + 1 + later) // 1000

    def the_tables(self) -> Tables:
        """Return the tables that are to be used."""
        return self.tables or own_tables()


def timestamps(times_ms: Ints) -> pa.Array:
    """Return times as a column."""
    return pa.array(times_ms * 1000).cast(TIMESTAMP)
