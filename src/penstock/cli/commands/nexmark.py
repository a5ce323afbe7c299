"""`penstock nexmark`: the events of the Nexmark benchmark, and its queries on Spark."""

import argparse
import json
from typing import Any

from penstock.cli.run_options import add_run_options, run_pipeline
from penstock.cli.verbs import add_verb
from penstock.core.numbers import pretty, table_number
from penstock.errors import InputError, nearest
from penstock.reports.progress import ProgressBar
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
  penstock nexmark run --query q11 --workload cosine --policy ds2 --minutes 60 --speed-up 30

Of fifty events one is a person, three are auctions and 46 are bids; --events counts them all.
With --kind the file holds the rows of that kind; without it, one row for each event, as the
reference has them: event_type (0, 1, 2), person, auction, bid (two of them null), dateTime.
Event times begin on 15 July 2015. The same options give the same rows, on every machine.

Queries 1, 2, 3, 5, 8 and 11 are the thesis' and the reference's; 0, 7, 10, 13, 14, 17, 20, 21 and
22 the reference's only.
"""

RUN_EXAMPLES = """\
examples:
  penstock nexmark run --query q11 --policy ds2                     two minutes, an hour of the wave
  penstock nexmark run --query q1 --workload spikes --policy dhalion
  penstock nexmark run --query q3 --policy hpa-varga --guard cooldown_s=300 --out runs/q3
  penstock nexmark run --query q1 --service 0 --rate-scale 0.02     rows take what they take

The loads are the thesis', of up to 2.2 million bids/s on eighty machines. Here they are scaled down
(--rate-scale), last shorter (--speed-up), and rows take time by waiting (--service), so that two
cores carry as many replicas. Other operators wait for their share of it, after the speeds of the
thesis. Event times follow the load. Everything else is as with penstock run, which also resumes it.
"""
#: What lets two cores carry the thesis' loads, in two minutes.
SERVICE_S, RATE_SCALE, SPEED_UP = 0.015, 1e-4, 30.0


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "nexmark",
        help="the Nexmark benchmark: events, queries, runs",
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
    parser = add_verb(verbs, "verify", about, EXAMPLES, run_verify)
    add = parser.add_argument
    add("--query", required=True, metavar="Q", help="such as q8; the help has them all")
    add("--events", type=int, required=True, metavar="N", help="so many events, of all kinds")
    _add_variant(parser)
    about = "events per second of event time (1,000 for q5, q8, q11; 10,000 for most others)"
    add("--rate", type=float, metavar="R", help=about)
    add("--rescale", action="store_true", help="change every operator's replicas on the way")
    _add_run(verbs)


def _add_variant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--variant",
        choices=("thesis", "reference"),
        help="whose query it is (the thesis', where it has one)",
    )


def _add_run(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "run a query on Spark under a load, scaled by a policy while it runs"
    parser = add_verb(verbs, "run", about, RUN_EXAMPLES, run_query)
    add = parser.add_argument
    add(
        "--query", required=True, metavar="Q", help="such as q8; see penstock nexmark verify --help"
    )
    _add_variant(parser)
    about = "time of a row at the query's own operator, waited for; 0: what it takes (%(default)g)"
    add("--service", type=float, default=SERVICE_S, metavar="S", help=about)
    add_run_options(parser)
    add("--out", metavar="DIR", help="keep the run here (runs/NAME-TIME)")
    parser.set_defaults(
        workload="cosine", rate_scale=RATE_SCALE, speed_up=SPEED_UP, resume=None, allow_removal=[]
    )


def run_query(args: argparse.Namespace) -> int:
    """Run a query as any other pipeline."""
    # other commands need no Arrow, and shall not wait for it
    from penstock.nexmark.queries import QUERIES  # noqa: PLC0415
    from penstock.nexmark.queries.common import check_variant  # noqa: PLC0415

    if args.query not in QUERIES:
        raise InputError("--query", f"unknown query {args.query!r}", nearest(args.query, QUERIES))
    if args.variant is not None:
        check_variant(args.query, args.variant, list(QUERIES[args.query].TRUTHS))
    numbers = [f"service_s={args.service}"]
    if args.variant is not None:
        numbers.append(f"variant={args.variant}")
    return run_pipeline(
        argparse.Namespace(**{**vars(args), "pipeline": args.query, "set": numbers})
    )


def run_verify(args: argparse.Namespace) -> int:
    """Run the query, compare, and show what differs."""
    from penstock.cli import nexmark_verification as verifying  # noqa: PLC0415  (Spark, which others need not wait for)
    from penstock.lab.nexmark_verify import VerifySpec  # noqa: PLC0415

    spec = VerifySpec(
        query=args.query,
        events=args.events,
        variant=args.variant,
        rate=args.rate,
        rescale=args.rescale,
    )
    with ProgressBar("verify", resumes=False) as bar:
        seen = verifying.run(spec, bar.show)
    page = verifying.as_page(spec, seen)
    print(json.dumps(verifying.as_json(spec, seen), indent=2) if args.json else page)
    return 0 if verifying.is_enough(spec, seen) else 1


def run_generate(args: argparse.Namespace) -> int:
    """Write the file, and show what is in it."""
    # other commands need no Arrow, and shall not wait for it
    from penstock.nexmark.export import GenerateSpec, generate  # noqa: PLC0415

    spec = GenerateSpec(
        events=args.events,
        kind=args.kind,
        hot=args.hot == "on",
        rate=args.rate,
        workload=args.workload,
        out=args.out,
    )
    with ProgressBar("generate", resumes=False) as bar:
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
