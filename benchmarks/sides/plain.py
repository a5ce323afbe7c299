"""Nexmark queries written plainly for Structured Streaming, in the thesis' variant."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

from penstock.nexmark.queries.q2 import MULTIPLES
from penstock.nexmark.queries.q3 import WAITS_S

#: How late events may be.
DELAY = "4 seconds"


def plain_q1(bids: DataFrame) -> DataFrame:
    """Multiply in single precision, and cut off the rest."""
    euros = (bids.price.cast("float") * F.lit(0.82).cast("float")).cast("long")
    return bids.select("auction", "bidder", euros.alias("price"), "dateTime")


def plain_q2(bids: DataFrame) -> DataFrame:
    """Choose by multiples."""
    wanted = F.lit(False)
    for number in MULTIPLES["thesis"]:
        wanted = wanted | (bids.auction % number == 0)
    return bids.where(wanted)


def plain_q3(auctions: DataFrame, persons: DataFrame) -> DataFrame:
    """Join within the time that they wait for each other."""
    a = auctions.withWatermark("dateTime", DELAY).alias("a")
    p = persons.withWatermark("dateTime", DELAY).alias("p")
    on = f"a.seller = p.id and {_within(WAITS_S['thesis'])}"
    return a.join(p, F.expr(on)).select("p.name", "p.city", "p.state", "a.id")


def plain_q5(bids: DataFrame) -> DataFrame:
    """Count by window."""
    window = F.window("dateTime", "300 seconds", "60 seconds")
    return bids.withWatermark("dateTime", DELAY).groupBy(window, "auction").count()


def plain_q8(persons: DataFrame, auctions: DataFrame) -> DataFrame:
    """Join within a window."""
    p = persons.withWatermark("dateTime", DELAY).alias("p")
    a = auctions.withWatermark("dateTime", DELAY).alias("a")
    on = f"a.seller = p.id and a.start = p.start and {_within(10)}"
    return p.join(a, F.expr(on)).select("p.id", "p.name", "a.reserve")


def plain_q11(bids: DataFrame) -> DataFrame:
    """Count by session."""
    session = F.session_window("dateTime", "10 seconds")
    return bids.withWatermark("dateTime", DELAY).groupBy(session, "bidder").count()


def _within(seconds: float) -> str:
    span = f"interval {seconds:g} seconds"
    return f"a.dateTime between p.dateTime - {span} and p.dateTime + {span}"
