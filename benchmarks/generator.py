"""Nexmark's events: rows that one core makes in a second of its time.

Numbers of bids are what most queries read; all fields include texts, which are drawn letter by
letter for persons and auctions.

    python benchmarks/generator.py
"""

import sys
import time
from collections.abc import Callable

from penstock.nexmark.event_order import AUCTIONS, BIDS, PERSONS
from penstock.nexmark.events import BID_FIELDS
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import events, rows
from sides.timing import fastest_s

#: Rows of one call, as a producer asks for them at most.
PART = 1 << 16
#: Far from the beginning, where there are as many persons and auctions to choose from as ever.
FIRST = 10_000_000
#: The aim for numbers of bids, rows/s.
MIN_ROWS_PER_S = 2e6


def main() -> int:
    """Print the table; exit code 1 if the aim is missed."""
    setting = StreamSettings()
    numbers = speed(lambda: rows(BIDS, FIRST, FIRST + PART, setting, BID_FIELDS))
    others = {
        "bids, all fields": lambda: rows(BIDS, FIRST, FIRST + PART, setting),
        "bids, numbers, hot off": lambda: rows(
            BIDS, FIRST, FIRST + PART, StreamSettings(hot=False), BID_FIELDS
        ),
        "auctions, all fields": lambda: rows(AUCTIONS, FIRST, FIRST + PART, setting),
        "persons, all fields": lambda: rows(PERSONS, FIRST, FIRST + PART, setting),
        "events of all kinds": lambda: events(FIRST, FIRST + PART, setting),
    }
    print("| generator | million rows/s a core | beside numbers of bids | aim |\n|---|--:|--:|---|")
    print(f"| bids, numbers | {numbers / 1e6:.2f} | 1 | at least {MIN_ROWS_PER_S / 1e6:.0f} |")
    for name, make in others.items():
        made = speed(make)
        print(f"| {name} | {made / 1e6:.2f} | {made / numbers:.3f} | |")
    return 0 if numbers >= MIN_ROWS_PER_S else 1


def speed(make: Callable[[], object]) -> float:
    """Rows per second of processor time."""
    return PART / fastest_s(make, min_s=1.0, clock=time.process_time)


if __name__ == "__main__":
    sys.exit(main())
