"""`penstock produce`: writes records to a topic at the rates of a workload."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import add_seed, read_minutes
from penstock.cli.subcommands import add_command
from penstock.errors import InputError
from penstock.reports.progress import ProgressBar

if TYPE_CHECKING:
    from penstock.runs.topic_production import ProduceSpec

EXAMPLES = """\
examples:
  penstock produce cosine --to topics/orders --rate-scale 0.001 --speed-up 10
  penstock produce "constant(rate=500)" --to topics/orders --minutes 5 --arrivals poisson
  penstock produce dns --to runs/mine/topics/lookups --rows mine.py:lookups
  penstock produce "constant(rate=1e6)" --minutes 1 --to topics/many --as-fast-as-possible
  penstock produce cosine --to kafka://localhost:9092/orders --rate-scale 0.01 --partitions 4

A function(first_id, due) -> pa.Table makes the rows. It gets the number of the first record and
the time at which each record is due. The same command resumes after an interruption: the rows in
the topic count as the first ones of the workload, and the next one is due immediately.

A Kafka topic gets each record as JSON. Every start begins with the first record, and the figures
are printed as JSON.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "produce",
        summary="write records to a topic at the rates of a workload",
        description="Append records to a topic, each when it is due, and report rate and lag.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("workload", metavar="WORKLOAD", help="see penstock workload")
    about = "directory of the topic or kafka://host:port/topic, created if missing"
    add("--to", required=True, metavar="DIR|ADDRESS", help=about)
    about = "partitions of a new Kafka topic (default: the brokers')"
    add("--partitions", type=int, metavar="N", help=about)
    about = "file with settings of the Kafka client, such as TLS and SASL"
    add("--properties", type=Path, metavar="FILE", help=about)
    about = "function that makes the rows (default: id long, value double, key long)"
    add("--rows", metavar="FILE.py:function", help=about)
    about = "length (default: the workload's, usually 140)"
    add("--minutes", type=read_minutes, metavar="N", help=about)
    add_seed(parser)
    about = "divide all times by X, keep the rates (default: %(default)g)"
    add("--speed-up", type=float, default=1.0, metavar="X", help=about)
    about = "multiply all rates by Y (default: %(default)g)"
    add("--rate-scale", type=float, default=1.0, metavar="Y", help=about)
    about = "deterministic, poisson or bursty (default: the workload's)"
    add("--arrivals", metavar="KIND", help=about)
    add("--as-fast-as-possible", action="store_true", help="write without waiting for due times")
    add("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Produce the records and print the figures."""
    # imported here because it loads Arrow, which other commands do not need
    from penstock.reports.topic_text import production_text  # noqa: PLC0415
    from penstock.runs.topic_production import ProduceSpec, produce  # noqa: PLC0415
    from penstock.topics.kafka.address import is_kafka_address  # noqa: PLC0415

    spec = ProduceSpec(
        workload=args.workload,
        to=args.to,
        rows=args.rows,
        minutes=args.minutes,
        seed=args.seed,
        speed_up=args.speed_up,
        rate_scale=args.rate_scale,
        arrivals=args.arrivals,
        at_once=args.as_fast_as_possible,
    )
    if is_kafka_address(spec.to):
        return _run_kafka(spec, args)
    for name in ("partitions", "properties"):
        if getattr(args, name) is not None:
            raise InputError(
                f"--{name}", "is for Kafka topics", "write --to kafka://host:port/topic"
            )
    with ProgressBar("produce") as bar:
        result = produce(spec, bar.show)
    print(json.dumps(result, indent=2) if args.json else production_text(result))
    return 0


def _run_kafka(spec: "ProduceSpec", args: argparse.Namespace) -> int:
    """Produce the records to Kafka; Ctrl-C ends it with what was written."""
    from penstock.runs.kafka_production import produce_to_kafka  # noqa: PLC0415

    with ProgressBar("produce", resumes=False) as bar:
        result = produce_to_kafka(spec, args.partitions, args.properties, bar.show)
    print(json.dumps(result, indent=2))
    return 130 if result["is_interrupted"] else 0
