"""`penstock nexmark`: the events of the Nexmark benchmark."""

import argparse
import json
from typing import Any

from penstock.cli.progress import Bar
from penstock.cli.verbs import add_verb
from penstock.core.numbers import pretty, table_number
from penstock.reports.tables import Table, as_text

EXAMPLES = """\
examples:
  penstock nexmark generate --events 1000000 --out events.parquet
  penstock nexmark generate --events 1000000 --kind bids --out bids.parquet
  penstock nexmark generate --events 200000 --kind auctions --hot off --out auctions.parquet
  penstock nexmark generate --events 200000 --kind bids --rate 1000 --out slow.parquet
  penstock nexmark generate --events 200000 --workload "cosine * 0.01" --out wave.parquet
  penstock nexmark verify --query q8 --events 200000 --rescale
  penstock nexmark verify --query q7 --events 50000

Of fifty events one is a person, three are auctions and 46 are bids; --events counts them all.
With --kind the file holds the rows of that kind; without it, one row for each event, as the
reference has them: event_type (0, 1, 2), person, auction, bid (two of them null), dateTime.
Event times begin on 15 July 2015. The same options give the same rows, on every machine.

Queries 1, 2, 3, 5, 8 and 11 are the thesis' and the reference's; 0, 7, 10, 13, 14, 17, 20, 21 and
22 the reference's only.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "nexmark",
        help="make the events of the Nexmark benchmark",
        description="Persons who sell things in auctions, and the bids on them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    add = add_verb(
        verbs, "generate", "write events into a Parquet file", EXAMPLES, run_generate
    ).add_argument
    add("--events", type=int, required=True, metavar="N", help="so many events, of all kinds")
    add("--kind", metavar="KIND", help="persons, auctions or bids only (one row for each event)")
    add(
        "--hot",
        choices=("on", "off"),
        default="on",
        help="whether a few sellers, auctions and bidders get most of it (%(default)s)",
    )
    add("--rate", type=float, metavar="R", help="events per second of event time (10,000)")
    add("--workload", metavar="W", help="event times follow a workload, see penstock workload")
    add("--out", required=True, metavar="FILE.parquet", help="the file, written whole or not")
    about = "run a query on Spark and compare every row with DuckDB; exit code 1 if one differs"
    add = add_verb(verbs, "verify", about, EXAMPLES, run_verify).add_argument
    add("--query", required=True, metavar="Q", help="such as q8; the help has them all")
    add("--events", type=int, required=True, metavar="N", help="so many events, of all kinds")
    add(
        "--variant",
        choices=("thesis", "reference"),
        help="whose query it is (the thesis', where it has one)",
    )
    add("--rate", type=float, metavar="R", help="events per second of event time")
    add("--rescale", action="store_true", help="change every operator's replicas on the way")


def run_verify(args: argparse.Namespace) -> int:
    """Run the query, compare, and show what differs."""
    from penstock.cli import verifying  # noqa: PLC0415  (Spark, which others need not wait for)
    from penstock.lab.verifying import VerifySpec  # noqa: PLC0415

    spec = VerifySpec(
        query=args.query,
        events=args.events,
        variant=args.variant,
        rate=args.rate,
        rescale=args.rescale,
    )
    with Bar("verify", resumes=False) as bar:
        seen = verifying.run(spec, bar.show)
    page = verifying.as_page(spec, seen)
    print(json.dumps(verifying.as_json(spec, seen), indent=2) if args.json else page)
    return 0 if verifying.is_enough(spec, seen) else 1


def run_generate(args: argparse.Namespace) -> int:
    """Write the file, and show what is in it."""
    # other commands need no Arrow, and shall not wait for it
    from penstock.cli.generating import GenerateSpec, generate  # noqa: PLC0415

    spec = GenerateSpec(
        events=args.events,
        kind=args.kind,
        hot=args.hot == "on",
        rate=args.rate,
        workload=args.workload,
        out=args.out,
    )
    with Bar("generate", resumes=False) as bar:
        result = generate(spec, bar.show)
    print(json.dumps(result, indent=2) if args.json else _shown(result))
    return 0


def _shown(result: dict[str, Any]) -> str:
    figures = {
        "file": result["file"],
        "events": pretty(result["events"]),
        **{name: pretty(count) for name, count in result["rows"].items()},
        "event time": f"{table_number(result['event_time_s'])} s",
        "size": f"{table_number(result['bytes'] / 1e6)} MB",
        "seconds": table_number(result["seconds"]),
    }
    return as_text(Table(columns=tuple(figures), rows=(tuple(figures.values()),)))
