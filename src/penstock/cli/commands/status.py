"""`penstock status`: how a run is, live or dead; the exit code tells its health."""

import argparse
import json
import time
from pathlib import Path

EXAMPLES = """\
examples:
  penstock status runs/orders              operators, replicas, queues, watermarks, disk
  penstock status runs/orders --json | jq .problems
  penstock status runs/orders >/dev/null || systemctl restart orders

Everything is read from the run directory; a live run is not disturbed. Replicas are shown as
wanted/requested/running where they differ. "oldest" is how long the oldest waiting row has waited.

exit codes: 0 running and healthy, 1 unhealthy or failed, 2 RUN is no run, 3 not running.
Unhealthy: an operator failed, an operator has committed nothing for 120 s while rows wait, or the
loop is stuck. A run that starts, or an ingest that falls behind, is healthy.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "status",
        help="how a run is, live or dead; the exit code tells its health",
        description="Show how a run is, live or dead; the exit code tells its health.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run_directory", metavar="RUN", type=Path, help="the directory of a run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show it."""
    # loaded where it is needed: other commands shall not wait for Arrow
    from penstock.reports.status_text import status_text, to_json  # noqa: PLC0415
    from penstock.runs.run_status import read_status  # noqa: PLC0415

    now = time.time()
    status = read_status(args.run_directory, now)
    print(json.dumps(to_json(status, now), indent=2) if args.json else status_text(status, now))
    return status.exit_code
