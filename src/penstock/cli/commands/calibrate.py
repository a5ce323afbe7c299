"""`penstock calibrate`: fits a simulator profile to runs on Spark."""

import argparse
import json
import sys
from pathlib import Path

from penstock.cli.subcommands import add_command
from penstock.errors import InputError
from penstock.files.text import write_text
from penstock.reports.calibration_text import as_table
from penstock.reports.tables import as_text
from penstock.twin.calibration import calibrate
from penstock.twin.calibration_runs import read_calibration_run
from penstock.twin.profile_toml import to_json, to_toml

EXAMPLES = """\
examples:
  penstock calibrate runs/q1-testrun -o spark-q1.toml        then: penstock twin RUN --profile
  penstock calibrate runs/q1-testrun runs/q3-testrun -o both.toml
  penstock simulate --engine ./spark-q1.toml --query q1 --policy dhalion

RUN must be a run on Spark: its journal records every batch. Use runs in which replicas changed.
A parameter that never varied cannot be fitted; the table marks it "not fitted".

A profile is valid only for the --set values it was measured with.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "calibrate",
        summary="fit a simulator profile to runs on Spark",
        description="Fit a simulator profile to the journals of runs on Spark.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="run directories")
    parser.add_argument(
        "-o", "--out", metavar="FILE.toml", type=Path, help="write the profile to this file"
    )
    parser.add_argument("--json", action="store_true", help="print the parameters as JSON")


def run(args: argparse.Namespace) -> int:
    """Read the runs, fit, print the parameters."""
    if args.out is not None and args.out.suffix != ".toml":
        raise InputError("--out", f"must end in .toml, got {str(args.out)!r}")
    calibration = calibrate([read_calibration_run(directory) for directory in args.runs])
    if args.out is not None:
        write_text(args.out, to_toml(calibration), "--out")
        print(f"wrote {args.out}", file=sys.stderr)
    print(
        json.dumps(to_json(calibration), indent=2) if args.json else as_text(as_table(calibration))
    )
    return 0
