"""`penstock produce`: fill a topic as a workload asks for it."""

import argparse
import json
from typing import Any

from penstock.cli.options import read_minutes
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

Rows come from a function(first_id, due) -> pa.Table: the number of the first record, and when
each record is due. The same command goes on where it was stopped: rows that the topic holds
are the workload's first, and the next one is due now.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "produce",
        help="fill a topic as a workload asks for it",
        description="Append records to a topic, each when it is due, and tell how well it went.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("workload", metavar="WORKLOAD", help="see penstock workload")
    add(
        "--to", required=True, metavar="DIR", help="directory of the topic, made if it is not there"
    )
    add(
        "--rows",
        metavar="FILE.py:function",
        help="makes the rows (id long, value double, key long)",
    )
    add("--minutes", type=read_minutes, metavar="N", help="length (the workload's own, mostly 140)")
    add("--seed", type=int, default=SEED, metavar="S", help="seed of all draws (%(default)s)")
    add("--speed-up", type=float, default=1.0, metavar="X", help="the same rates in less time (1)")
    add("--rate-scale", type=float, default=1.0, metavar="Y", help="every rate times Y (1)")
    add("--arrivals", metavar="KIND", help="deterministic, poisson or bursty (the workload's own)")
    add("--as-fast-as-possible", action="store_true", help="do not wait: as if all were due by now")
    add("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Produce, and show how it went."""
    # other commands need no Arrow, and shall not wait for it
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
