"""Settings of the stream; the defaults are the reference's."""

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.nexmark.event_order import FIRST_ID
from penstock.nexmark.splitmix import Ints
from penstock.nexmark.times import Clock, FixedRate
from penstock.nexmark.vocabulary import Tables, builtin_tables
from penstock.topics.ddl import TIMESTAMP

#: Midnight of 15 July 2015 in UTC, a multiple of every window's size.
BASE_MS = 1_436_918_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """Settings of a stream of events."""

    #: Whether a few sellers, auctions and bidders get most events; not so in the thesis.
    hot: bool = True
    clock: Clock = field(default_factory=FixedRate)
    base_ms: int = BASE_MS
    #: URLs and pool of letters; None means the built-in ones, so that pickled settings stay small.
    tables: Tables | None = None

    def ratio(self, of: int) -> int:
        """Return the ratio of hot choices: all but one in `of` are hot, or none."""
        return of if self.hot else 1

    def times_ms(self, ids: Ints, later: int = 0) -> Ints:
        """Return the times of events, or of those `later` events after them."""
        return self.base_ms + self.clock.after_us(ids - FIRST_ID + 1 + later) // 1000

    def effective_tables(self) -> Tables:
        """Return the tables in use."""
        return self.tables or builtin_tables()


def timestamps(times_ms: Ints) -> pa.Array:
    """Return times as a column."""
    return pa.array(times_ms * 1000).cast(TIMESTAMP)
