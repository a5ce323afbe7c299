"""`penstock report`: one HTML page about one or several runs."""

import argparse
import sys
from pathlib import Path

from penstock.cli.subcommands import add_command

EXAMPLES = """\
examples:
  penstock report runs/q1                            writes runs/q1/report.html
  penstock report runs/q1-ds2 runs/q1-dhalion -o compared.html

The page is one file without scripts: summary, curves, decisions with their reasons, a comparison
if there are several runs, and how to repeat each run. A live run is reported as far as it is.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "report",
        summary="write an HTML page about runs, to show to others",
        description="Write one self-contained HTML page about one or several runs.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("directories", nargs="+", type=Path, metavar="RUN", help="run directory")
    add(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="page (default: report.html in the first RUN)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the page and print its path."""
    # imported here because it loads the figures of runs, which other commands do not need
    from penstock.reports.run_report import REPORT, write_report  # noqa: PLC0415

    path = args.out or args.directories[0] / REPORT
    write_report(args.directories, path)
    print(path)
    print(f"open it in a browser: file://{path.resolve()}", file=sys.stderr)
    return 0
