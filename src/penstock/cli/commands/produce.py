"""`penstock produce`: writes records to a topic at the rates of a workload."""

import argparse
import json
from typing import Any

from penstock.cli.options import read_minutes
from penstock.cli.subcommands import add_command
from penstock.core.numbers import pretty, table_number
from penstock.reports.progress import ProgressBar
from penstock.reports.tables import Table, as_text
from penstock.workloads.pattern import SEED

EXAMPLES = """\
examples:
  penstock produce cosine --to topics/orders --rate-scale 0.001 --speed-up 10
  penstock produce "constant(rate=500)" --to topics/orders --minutes 5 --arrivals poisson
  penstock produce dns --to runs/mine/topics/lookups --rows mine.py:lookups
  penstock produce "constant(rate=1e6)" --minutes 1 --to topics/many --as-fast-as-possible

A function(first_id, due) -> pa.Table makes the rows. It gets the number of the first record and
the time at which each record is due. The same command resumes after an interruption: the rows in
the topic count as the first ones of the workload, and the next one is due immediately.
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
    add("--to", required=True, metavar="DIR", help="directory of the topic, created if missing")
    add(
        "--rows",
        metavar="FILE.py:function",
        help="function that makes the rows (default: id long, value double, key long)",
    )
    add(
        "--minutes",
        type=read_minutes,
        metavar="N",
        help="length (default: the workload's, usually 140)",
    )
    add("--seed", type=int, default=SEED, metavar="S", help="random seed (default: %(default)s)")
    add(
        "--speed-up",
        type=float,
        default=1.0,
        metavar="X",
        help="divide all times by X, keep the rates (default: 1)",
    )
    add(
        "--rate-scale",
        type=float,
        default=1.0,
        metavar="Y",
        help="multiply all rates by Y (default: 1)",
    )
    add(
        "--arrivals",
        metavar="KIND",
        help="deterministic, poisson or bursty (default: the workload's)",
    )
    add("--as-fast-as-possible", action="store_true", help="write without waiting for due times")
    add("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Produce the records and print the figures."""
    # imported here because it loads Arrow, which other commands do not need
    from penstock.runs.topic_production import ProduceSpec, produce  # noqa: PLC0415

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
    with ProgressBar("produce") as bar:
        result = produce(spec, bar.show)
    print(json.dumps(result, indent=2) if args.json else _shown(result))
    return 0


def _shown(result: dict[str, Any]) -> str:
    lag_s = result["worst_lag_s"]
    figures = {
        "records": pretty(result["records"]),
        "seconds": table_number(result["seconds"]),
        "records/s": pretty(round(result["rate"])),
        "worst lag": "-" if lag_s is None else f"{table_number(lag_s)} s",
    }
    table = Table(columns=tuple(figures), rows=(tuple(figures.values()),), words=0)
    return as_text(table)
