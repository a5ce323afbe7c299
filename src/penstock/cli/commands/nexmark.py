"""`penstock nexmark`: generates Nexmark events, runs and verifies its queries."""

import argparse
import json

from penstock.cli.run_options import add_run_options, run_pipeline
from penstock.cli.subcommands import add_group, add_verb
from penstock.reports.progress import ProgressBar

EXAMPLES = """\
examples:
  penstock nexmark generate --events 1000000 --out events.parquet
  penstock nexmark generate --events 1000000 --kind bids --out bids.parquet
  penstock nexmark generate --events 200000 --kind auctions --hot off --out auctions.parquet
  penstock nexmark generate --events 200000 --kind bids --rate 1000 --out slow.parquet
  penstock nexmark generate --events 200000 --workload "cosine * 0.01" --out wave.parquet
  penstock nexmark verify --query q8 --events 200000 --rescale
  penstock nexmark verify --query q7 --events 50000
  penstock nexmark verify --query q3 --events 200000 --rescale --chain on
  penstock nexmark verify --query q1 --events 200000 --topics kafka://localhost:9092/verify
  penstock nexmark run --query q11 --workload cosine --policy ds2 --minutes 60 --speed-up 30

Of fifty events, one is a person, three are auctions and 46 are bids; --events counts all of them.
With --kind the file contains the rows of that kind. Without it, the file contains one row per
event, as in the reference implementation: event_type (0, 1, 2), person, auction, bid (two of the
three are null), dateTime. Event times begin on 15 July 2015. The same options give the same rows on
every machine.

Queries 1, 2, 3, 5, 8 and 11 exist in the variants of the thesis and of the reference; queries 0, 7,
10, 13, 14, 17, 20, 21 and 22 in the variant of the reference only.
"""

RUN_EXAMPLES = """\
examples:
  penstock nexmark run --query q11 --policy ds2                     one hour of load in 2 minutes
  penstock nexmark run --query q1 --workload spikes --policy dhalion
  penstock nexmark run --query q3 --policy hpa-varga --guard cooldown_s=300 --out runs/q3
  penstock nexmark run --query q1 --service 0 --rate-scale 0.02     no emulated service time

The workloads of the thesis offer up to 2.2 million bids/s to eighty machines. Three options scale
them down, so that two cores can run as many replicas: --rate-scale reduces the rates, --speed-up
shortens the run, and --service adds a waiting time to each row. Other operators wait a share of
--service, in proportion to their speeds in the thesis. Event times follow the load. All other
options are those of penstock run, which also resumes the run.
"""
#: Scale the loads of the thesis to two cores and two minutes.
SERVICE_S, RATE_SCALE, SPEED_UP = 0.015, 1e-4, 30.0


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    verbs = add_group(
        commands,
        "nexmark",
        summary="Nexmark benchmark: generate events, run and verify queries",
        description="The Nexmark auction benchmark: generate events, run and verify its queries.",
        examples=EXAMPLES,
    )
    about = "write events to a Parquet file"
    add = add_verb(verbs, "generate", about, EXAMPLES, run_generate).add_argument
    add("--events", type=int, required=True, metavar="N", help="number of events of all kinds")
    about = "persons, auctions or bids (default: all, one row per event)"
    add("--kind", metavar="KIND", help=about)
    about = "skew: a few sellers, auctions and bidders get most events (default: %(default)s)"
    add("--hot", choices=("on", "off"), default="on", help=about)
    add("--rate", type=float, metavar="R", help="events per second of event time (default: 10,000)")
    add("--workload", metavar="W", help="let event times follow a workload, see penstock workload")
    add("--out", required=True, metavar="FILE.parquet", help="output file, written atomically")
    about = "run a query on Spark and compare every row with DuckDB; exit code 1 if one differs"
    parser = add_verb(verbs, "verify", about, EXAMPLES, run_verify)
    add = parser.add_argument
    add("--query", required=True, metavar="Q", help="query, such as q8; listed below")
    add("--events", type=int, required=True, metavar="N", help="number of events of all kinds")
    _add_variant(parser)
    about = "events per second of event time (default: 10,000; q5, q8, q11: 1,000)"
    add("--rate", type=float, metavar="R", help=about)
    add("--rescale", action="store_true", help="rescale every operator during the run")
    about = "on: neighbouring operators run as one query where they can (default: off)"
    add("--chain", choices=("on", "off"), default="off", help=about)
    about = "keep the topics in Kafka, under a prefix that begins so: kafka://host:port/prefix"
    add("--topics", metavar="ADDRESS", help=about)
    add("--topics-properties", metavar="FILE", help="settings of Kafka's clients for --topics")
    _add_run(verbs)


def _add_variant(parser: argparse.ArgumentParser) -> None:
    about = "variant of the query (default: thesis, if it exists)"
    parser.add_argument("--variant", choices=("thesis", "reference"), help=about)


def _add_run(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "run a query on Spark under a load and scale it by a policy"
    parser = add_verb(verbs, "run", about, RUN_EXAMPLES, run_query)
    add = parser.add_argument
    about = "query, such as q8; see penstock nexmark verify --help"
    add("--query", required=True, metavar="Q", help=about)
    _add_variant(parser)
    about = "emulated service time per row at the main operator (default: %(default)g)"
    add("--service", type=float, default=SERVICE_S, metavar="S", help=about)
    add_run_options(parser)
    add("--out", metavar="DIR", help="run directory (default: runs/NAME-TIME)")
    parser.set_defaults(
        workload="cosine",
        rate_scale=RATE_SCALE,
        speed_up=SPEED_UP,
        resume=None,
        allow_removal=[],
        available_now=False,
        standby=False,
    )


def run_query(args: argparse.Namespace) -> int:
    """Run a query like any other pipeline."""
    # imported here because it loads Arrow, which other commands do not need
    from penstock.nexmark.queries import find_query  # noqa: PLC0415

    query = find_query(args.query, args.variant)
    variant = [f"variant={args.variant}"] if args.variant is not None else []
    options = {"pipeline": query.name, "set": [f"service_s={args.service}", *variant]}
    return run_pipeline(argparse.Namespace(**{**vars(args), **options}))


def run_verify(args: argparse.Namespace) -> int:
    """Run the query, compare, and print the differences."""
    # imported here because it loads Spark, which the other verbs do not need
    from penstock.lab.nexmark_verify import (  # noqa: PLC0415
        VerifySpec,
        is_verified,
        verify_in_session,
    )
    from penstock.reports.nexmark_text import (  # noqa: PLC0415
        verification_json,
        verification_text,
    )

    spec = VerifySpec(
        query=args.query,
        events=args.events,
        variant=args.variant,
        rate=args.rate,
        rescale=args.rescale,
        has_chains=args.chain == "on",
        topics=args.topics,
        topics_properties=args.topics_properties,
    )
    with ProgressBar("verify", resumes=False) as bar:
        result = verify_in_session(spec, bar.show)
    if args.json:
        print(json.dumps(verification_json(spec, result), indent=2))
    else:
        print(verification_text(spec, result))
    return 0 if is_verified(spec, result) else 1


def run_generate(args: argparse.Namespace) -> int:
    """Write the file and print its figures."""
    # imported here because it loads Arrow, which other commands do not need
    from penstock.nexmark.export import GenerateSpec, generate  # noqa: PLC0415
    from penstock.reports.nexmark_text import generation_text  # noqa: PLC0415

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
    print(json.dumps(result, indent=2) if args.json else generation_text(result))
    return 0
