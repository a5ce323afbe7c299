"""`penstock workload`: shows offered load over time."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from penstock.cli.options import parse_pairs, read_minutes
from penstock.cli.subcommands import add_command
from penstock.core.numbers import pretty
from penstock.core.params import ParamDescription
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import chart_width, sparkline
from penstock.reports.text_layout import hang
from penstock.workloads.expression import NamedPart, Tree, parse, write
from penstock.workloads.pattern import SEED, Pattern
from penstock.workloads.plot import draw_workload
from penstock.workloads.registry import PATTERNS, find_pattern, make_workload, read_params
from penstock.workloads.spikes import Spikes
from penstock.workloads.workload import Workload

EXAMPLES = """\
examples:
  penstock workload                                      list all workloads
  penstock workload cosine                               the cosine load of the thesis
  penstock workload random --seed 1073 --json            one rate per minute, as JSON
  penstock workload increase --param spike_up=0.05       add spikes to any workload
  penstock workload "cosine * 0.1 + constant(rate=2e4)"  the sum of two workloads
  penstock workload "constant for 30 then dns" --plot load.svg
  penstock workload trace --param file=tweets.csv --param count=value --param mean=5000
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "workload",
        summary="show a workload: its offered load over time",
        description="Show a workload as a chart with figures, as JSON, or as a picture.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="workload, or an expression with +, * and then"
    )
    parser.add_argument(
        "--minutes",
        type=read_minutes,
        metavar="N",
        help="length (default: 140; convergence: 90)",
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, metavar="S", help="random seed (default: %(default)s)"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="parameter of the workload"
    )
    parser.add_argument("--json", action="store_true", help="print JSON with one rate per minute")
    parser.add_argument("--plot", metavar="FILE", help="draw it to a .png, .svg or .pdf file")
    parser.add_argument(
        "--list", action="store_true", help="list all workloads, or NAME, with parameters"
    )


def run(args: argparse.Namespace) -> int:
    """Print or draw the workload."""
    if args.list or not args.name:
        chosen = [find_pattern(args.name)] if args.name else list(PATTERNS.values())
        print(_list_json(chosen) if args.json else _list(chosen))
        return 0
    given = parse_pairs(args.param, "--param")
    load = make_workload(args.name, args.minutes, args.seed, given)
    tree = parse(args.name)
    title = f"{write(tree)}, seed {args.seed}"
    if args.plot:
        print(f"picture: {draw_workload(load, title, args.plot)}", file=sys.stderr)
    if args.json:
        print(json.dumps(_to_json(load, tree, args.seed, given)))
    else:
        print(_report(load, title))
    return 0


def _report(load: Workload, title: str) -> str:
    minutes = pretty(load.duration_s / 60)
    width = chart_width()
    line = sparkline(load.mean_rates(load.duration_s / width).tolist())
    axis = f"0{minutes + ' min':>{width - 1}}"
    return "\n".join([title, "", line, axis, "", *_figures(load, minutes)])


def _figures(load: Workload, minutes: str) -> list[str]:
    rates = load.mean_rates()
    low, high = int(rates.argmin()), int(rates.argmax())
    rows = [
        ("min", pretty(float(rates[low])), f"records/s, minute {low}"),
        ("mean", pretty(load.mean_rate), "records/s"),
        ("max", pretty(float(rates[high])), f"records/s, minute {high}"),
        ("total", pretty(load.total_records), "records"),
        ("length", minutes, "minutes"),
    ]
    lines = align_rows([row[:2] for row in rows])
    return [f"{line} {unit}" for line, (_, _, unit) in zip(lines, rows, strict=True)]


def _to_json(load: Workload, tree: Tree, seed: int, given: dict[str, str]) -> dict[str, Any]:
    rates = [_number(rate) for rate in load.mean_rates()]
    return {
        "name": write(tree),
        "seed": seed,
        "minutes": _number(load.duration_s / 60),
        "params": _used(tree, given),
        "total_records": load.total_records,
        "min": min(rates),
        "mean": _number(load.mean_rate),
        "max": max(rates),
        "rates": rates,
    }


def _number(value: float) -> int | float:
    """Write whole numbers without a fraction, and others without float noise."""
    return int(value) if value == int(value) else round(float(value), 6)


def _used(tree: Tree, given: dict[str, str]) -> dict[str, Any]:
    """Return all parameters of a single workload; the name of an expression contains them."""
    if not isinstance(tree, NamedPart):
        return {}
    chosen = {key: value for key, value in (dict(tree.given) | given).items() if key != "seed"}
    params, spikes = read_params(find_pattern(tree.name), chosen)
    return asdict(params) | (asdict(spikes) if spikes.wanted else {})


def _list(patterns: Sequence[Pattern]) -> str:
    spikes = "\n".join(
        ["spikes, which every workload can have:", *map(_param_line, Spikes.describe())]
    )
    return "\n\n".join([*map(_describe, patterns), spikes])


def _describe(pattern: Pattern) -> str:
    head = [hang(pattern.name, pattern.summary, 19), hang("", pattern.source, 19)]
    own = [_param_line(item) for item in pattern.params.describe()]
    spikes = [
        _param_line(replace(item, default=getattr(pattern.spikes, item.name)))
        for item in Spikes.describe()
        if pattern.spikes.wanted
    ]
    return "\n".join(head + own + spikes)


def _param_line(item: ParamDescription) -> str:
    notes = "; ".join(part for part in (item.spec.unit, item.spec.bounds) if part)
    value = item.name if item.default in (None, "") else f"{item.name}={_default(item.default)}"
    return hang(f"  {value}", f"{item.spec.doc}{f' ({notes})' if notes else ''}", 25)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _list_json(patterns: Sequence[Pattern]) -> str:
    return json.dumps(
        [
            {
                "name": pattern.name,
                "summary": pattern.summary,
                "source": pattern.source,
                "minutes": pattern.minutes,
                "seeded": pattern.seeded,
                "arrivals": pattern.arrivals,
                "params": {item.name: item.default for item in pattern.params.describe()},
            }
            for pattern in patterns
        ],
        indent=2,
    )
