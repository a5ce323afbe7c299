"""Write orders as JSON files into a directory, as a shop would: some lines are damaged.

python examples/revenue/make_orders.py shop/in --files 60 --every 2     # one every 2 s
"""

import argparse
import json
import os
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

CUSTOMERS = ("ann", "bob", "cid", "dee", "eve", "guest")
BEGIN = datetime(2026, 1, 5, 19, 0, tzinfo=UTC)
#: Seconds of event time in one file, and by how much its orders are out of order at most.
SPAN_S, DISORDER_S = 10, 4


def order_lines(number: int, rows: int, seed: int = 1) -> list[str]:
    """Return the lines of one file: orders of ten seconds, in no order, one line damaged."""
    rng = random.Random(f"{seed}/{number}")
    lines = []
    for place in range(rows):
        second = number * SPAN_S + rng.uniform(-DISORDER_S if number else 0, SPAN_S)
        order = {
            "id": number * rows + place,
            "ts": (BEGIN + timedelta(seconds=round(second, 3))).isoformat(),
            "customer": rng.choice(CUSTOMERS),
            "amount": rng.randrange(1, 200),
        }
        lines.append(json.dumps(order))
    if number % 7 == 3:
        lines[rng.randrange(rows)] = '{"id": '
    return lines


def write_file(directory: Path, number: int, lines: list[str]) -> None:
    """Make a file visible as a whole: a reader must not see half of it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"orders-{number:05d}.json"
    aside = directory / f".{path.name}.tmp"
    aside.write_text("\n".join(lines) + "\n")
    # Spark reads files in the order of their times, which may be equal without this
    os.utime(aside, (BEGIN.timestamp() + number, BEGIN.timestamp() + number))
    aside.rename(path)


def main() -> None:
    """Write files, at once or one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=60, metavar="N", help="files (%(default)s)")
    parser.add_argument("--rows", type=int, default=200, metavar="N", help="rows in each")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first")
    parser.add_argument("--every", type=float, default=0, metavar="S", help="seconds between two")
    args = parser.parse_args()
    for number in range(args.first, args.first + args.files):
        write_file(args.directory, number, order_lines(number, args.rows))
        time.sleep(args.every)


if __name__ == "__main__":
    main()
