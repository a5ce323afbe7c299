"""`penstock watch`: lets a policy decide on metrics from Prometheus."""

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import add_pairs, parse_pairs, read_minutes
from penstock.cli.subcommands import add_command
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.control.loop import Tick

EXAMPLES = """\
examples:
  penstock watch --prometheus http://127.0.0.1:9090 --map penstock --policy ds2
  penstock watch --prometheus http://prom:9090 --map flink --policy ds2 \\
    --set 'selector=job_name="bids"' --edge "Source:_Bids>Mapper" --edge "Mapper>Sink"
  penstock watch --prometheus http://prom:9090 --map ./map.toml --policy queueing --objective 5 \\
    --webhook http://127.0.0.1:8000/scale --guard budget=40 --guard cooldown_s=300
  penstock watch --prometheus http://prom:9090 --map flink --policy dhalion --once --json

Without --webhook it is a dry run: decisions are printed and journaled only. With --webhook, each
change is posted as {"version": 1, "at": seconds, "replicas": {operator: number}, "decision": ...}:
the replicas to set, and the decision with reasons, formulas and what guards changed. An answer
other than 2xx is retried with growing pauses; the decision is null if the tick of a retry has none.
The environment variable PENSTOCK_WEBHOOK_TOKEN is sent as a bearer token. With --out, penstock
explain, dashboard, top, report and replay read the run.

A map names a query for each measure; penstock watch --show-map flink prints one to start from.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "watch",
        summary="decide on metrics from Prometheus, for any engine",
        description="Read metrics from Prometheus and let a policy decide: dry run, or webhook.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("--prometheus", metavar="URL", help="address of the Prometheus server")
    add("--map", metavar="MAP", help="penstock, flink, or a file ./map.toml")
    add("--show-map", metavar="NAME", help="print a built-in map and end")
    add("--policy", metavar="NAME", help="see penstock policies; or a .py file")
    add_pairs(parser, "--param", "parameter of the policy")
    add_pairs(parser, "--guard", "guard, see penstock policies --guards")
    add_pairs(parser, "--set", "variable of the map, such as window=60s")
    about = "an edge of the pipeline, where the map has none; may be repeated"
    add("--edge", action="append", default=[], metavar="A>B", help=about)
    add("--objective", type=float, metavar="S", help="latency objective, for policies with one")
    about = "time between decisions (default: %(default)g)"
    add("--interval", type=float, default=15.0, metavar="S", help=about)
    add("--minutes", type=read_minutes, metavar="N", help="end after so long (default: never)")
    add("--once", action="store_true", help="make one decision and end")
    add("--webhook", metavar="URL", help="post changes there (default: dry run)")
    add("--out", type=Path, metavar="DIR", help="run directory")
    add("--json", action="store_true", help="print decisions as JSON, one per line")


def run(args: argparse.Namespace) -> int:
    """Watch until the time is up or Ctrl-C."""
    # imported here because other commands do not need it
    from penstock.prometheus.metric_map import load_map  # noqa: PLC0415
    from penstock.prometheus.watch_loop import WatchSpec, watch  # noqa: PLC0415
    from penstock.prometheus.watched_engine import Webhook  # noqa: PLC0415

    if args.show_map is not None:
        return _show_map(args.show_map)
    for option, value in (
        ("--prometheus", args.prometheus),
        ("--map", args.map),
        ("--policy", args.policy),
    ):
        if not value:
            raise InputError(option, "missing")
    if not 1 <= args.interval < 86_400:
        raise InputError("--interval", f"must be at least 1, got {args.interval:g}")
    mapped = load_map(args.map, parse_pairs(args.set, "--set"), _edges(args.edge))
    length_s = math.inf if args.minutes is None else 60.0 * args.minutes
    spec = WatchSpec(
        url=args.prometheus,
        mapped=mapped,
        policy=args.policy,
        params=parse_pairs(args.param, "--param"),
        guards=parse_pairs(args.guard, "--guard"),
        interval_s=1.0 if args.once else args.interval,
        duration_s=length_s,
        objective_s=args.objective,
    )
    token = os.environ.get("PENSTOCK_WEBHOOK_TOKEN", "")
    webhook = Webhook(url=args.webhook, token=token) if args.webhook else None
    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    try:
        return _follow(watch(spec, args.out, webhook, lambda: bool(stopped)), args)
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(ticks: "Iterator[Tick]", args: argparse.Namespace) -> int:
    from penstock.reports.top_view import plain_lines  # noqa: PLC0415

    tick = None
    for tick in ticks:
        if args.json:
            decision = tick.decision.to_json(with_numbers=True) if tick.decision else None
            line = {"at": tick.at, "time": round(time.time(), 3), "error": tick.error}
            print(json.dumps(line | {"applied": tick.applied, "decision": decision}), flush=True)
        else:
            print("\n".join(plain_lines([tick])), flush=True)
        if args.once:
            break
    is_answered = tick is not None and tick.decision is not None
    if args.once and not is_answered:
        print(f"error: no decision: {tick.error if tick is not None else ''}", file=sys.stderr)
        return 1
    return 0


def _edges(pairs: list[str]) -> list[tuple[str, str]]:
    edges = []
    for pair in pairs:
        feeder, sign, name = pair.partition(">")
        if not sign or not feeder.strip() or not name.strip():
            raise InputError("--edge", f"must be A>B, got {pair!r}")
        edges.append((feeder.strip(), name.strip()))
    return edges


def _show_map(name: str) -> int:
    from importlib.resources import files  # noqa: PLC0415

    from penstock.prometheus.metric_map import built_in_maps, load_map  # noqa: PLC0415

    if name not in built_in_maps():
        load_map(name)  # says which there are
        raise InputError("--show-map", "takes the name of a built-in map")
    print(
        (files("penstock.prometheus") / "maps" / f"{name}.toml").read_text(encoding="utf-8"), end=""
    )
    return 0
