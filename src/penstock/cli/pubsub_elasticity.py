"""The verb `elasticity` of `penstock pubsub`."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from penstock.cli.options import add_seed
from penstock.cli.subcommands import add_verb

if TYPE_CHECKING:
    from penstock.pubsub.bench.elasticity import ElasticitySpec

EXAMPLES = """\
examples:
  penstock pubsub elasticity --figure 8                          up, level, down, in five minutes
  penstock pubsub elasticity --figure 9 --picture market.svg     a day at a stock exchange
  penstock pubsub elasticity --figure 8 --seconds 120 --json

Figures 8 and 9 of E-StreamHub, shortened, on Spark: hosts start and end while
publications come faster and slower. Hosts are emulated: names with a share of a core.
penstock reproduce streamhub simulates both figures at the paper's size.

exit codes:
  0  done, and all publications that were compared with brute force were right
  1  some were wrong, or the engine failed
  2  wrong options
"""


def add_elasticity_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb with its options."""
    about = "let hosts follow the load of figure 8 or 9 of E-StreamHub, on Spark"
    parser = add_verb(verbs, "elasticity", about, EXAMPLES, run)

    def add(option: str, kind: type, default: float, metavar: str, about: str) -> None:
        text = f"{about} (default: %(default)s)"
        parser.add_argument(option, type=kind, default=default, metavar=metavar, help=text)

    parser.add_argument("--figure", type=int, required=True, metavar="8|9", help="which load")
    add("--seconds", float, 300.0, "S", "length, instead of 40 minutes")
    add("--peak", float, 700.0, "N", "publications/s at the top")
    add("--subscriptions", int, 50_000, "N", "number of subscriptions")
    add("--hosts", int, 8, "N", "hosts at most")
    add("--share", float, 0.06, "X", "part of a core that a host has, emulated")
    add("--period", float, 10.0, "S", "length of a row of the table")
    parser.add_argument("--plain", action="store_true", help="plain subscriptions")
    about = "keep the service in this directory (default: a temporary one)"
    parser.add_argument("--dir", type=Path, metavar="DIR", help=about)
    about = "draw it: .svg, .png or .pdf"
    parser.add_argument("--picture", type=Path, metavar="FILE", help=about)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON to a file, too")
    about = "write table and picture into a page"
    parser.add_argument("--markdown", type=Path, metavar="FILE", help=about)
    add_seed(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiment, print it and write what was asked for."""
    # it imports what it needs: Arrow and Spark take long to load
    from penstock.files.atomic import replace  # noqa: PLC0415
    from penstock.pubsub.bench.elasticity import run_elasticity  # noqa: PLC0415
    from penstock.reports.canvas import check_ending  # noqa: PLC0415
    from penstock.reports.elasticity_text import (  # noqa: PLC0415
        draw_elasticity,
        elasticity_json,
        elasticity_text,
        write_elasticity_page,
    )

    spec = _make_spec(args)
    if args.picture is not None:
        check_ending(args.picture)
    with TemporaryDirectory(prefix="penstock-elasticity-") as temporary:
        result = run_elasticity(spec, args.dir or Path(temporary) / "service", _say)
    figures = json.dumps(elasticity_json(spec, result), indent=2)
    print(figures if args.json else elasticity_text(spec, result))
    if args.out is not None:
        replace(args.out, f"{figures}\n".encode())
    if args.picture is not None:
        draw_elasticity(spec, result, args.picture)
    if args.markdown is not None:
        write_elasticity_page(args.markdown, spec, result, args.picture)
    return 1 if result.wrong_publications else 0


def _make_spec(args: argparse.Namespace) -> "ElasticitySpec":
    from penstock.pipelines.host_declaration import Hosts  # noqa: PLC0415
    from penstock.pubsub.bench.elasticity import MATCH_SLICES, ElasticitySpec  # noqa: PLC0415
    from penstock.pubsub.bench.load import BenchSpec  # noqa: PLC0415
    from penstock.pubsub.kernels.backend import default_backend  # noqa: PLC0415

    load = BenchSpec(
        subscriptions=args.subscriptions,
        attributes=4,
        match_rate=0.01,
        is_encrypted=not args.plain,
        publications=1,
        slices=MATCH_SLICES,
        threads=1,
        rounds=1,
        seed=args.seed,
        backend=default_backend(),
    )
    return ElasticitySpec(
        figure=args.figure,
        seconds=args.seconds,
        peak_per_s=args.peak,
        hosts=Hosts(start=1, most=args.hosts, share=args.share),
        period_s=args.period,
        load=load,
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
