"""`penstock status`: shows a run, live or stopped; the exit code reports its health."""

import argparse
import json
import time
from pathlib import Path

from penstock.cli.subcommands import add_command

EXAMPLES = """\
examples:
  penstock status runs/orders              operators, replicas, queues, watermarks, disk
  penstock status runs/orders --json | jq .problems
  penstock status runs/orders >/dev/null || systemctl restart orders

The command only reads the run directory and does not disturb a live run. Replicas are shown as
wanted/requested/running where they differ; "oldest" is the age of the oldest waiting row.

exit codes:
  0  running and healthy
  1  unhealthy or failed
  2  RUN is not a run directory
  3  not running

A run is unhealthy if an operator failed, if an operator has committed nothing for 120 s while rows
wait, or if the control loop is stuck. A starting run, or one whose ingest falls behind, is healthy.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "status",
        summary="show the health of a run; exit code 0: healthy",
        description="Show the state of a live or stopped run. The exit code reports its health.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("run_directory", metavar="RUN", type=Path, help="run directory")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the status."""
    # imported here because it loads Arrow, which other commands do not need
    from penstock.reports.status_text import status_text, to_json  # noqa: PLC0415
    from penstock.runs.run_status import read_status  # noqa: PLC0415

    now = time.time()
    status = read_status(args.run_directory, now)
    print(json.dumps(to_json(status, now), indent=2) if args.json else status_text(status, now))
    return status.exit_code
