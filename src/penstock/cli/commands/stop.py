"""`penstock stop`: stops a live run after its running batches, and waits for it."""

import argparse
import math
import sys
from pathlib import Path

from penstock.cli.subcommands import add_command
from penstock.errors import InputError

#: The exit code of `penstock status` for a run that is not running.
NOT_RUNNING = 3
EXAMPLES = """\
examples:
  penstock stop runs/orders                  stop it and wait until it has ended
  penstock stop runs/orders --timeout 10     wait for at most 10 s
  penstock run --resume runs/orders          resume it

The command sends SIGTERM: the run finishes its running batches and ends. A second `penstock stop`
ends the run at once. No data is lost in either case.

exit codes:
  0  stopped
  1  still running after --timeout, or the run failed or lost records
  2  RUN is not a run directory
  3  was not running
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "stop",
        summary="stop a live run after its running batches",
        description="Stop a live run after its running batches, and wait until it has ended.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("run_directory", metavar="RUN", type=Path, help="run directory")
    about = "maximum time to wait (default: %(default)g s)"
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help=about)


def run(args: argparse.Namespace) -> int:
    """Stop the run."""
    from penstock.runs.run_status import read_status  # noqa: PLC0415  (loads Arrow)
    from penstock.runs.run_stop import stop_run  # noqa: PLC0415  (loads Arrow)

    if not 0 <= args.timeout < math.inf:
        raise InputError("--timeout", f"must be at least 0 and finite, got {args.timeout:g}")
    if not stop_run(args.run_directory, args.timeout, _say):
        _say(f"{args.run_directory} is not running")
        return NOT_RUNNING
    _say(f"{args.run_directory} has stopped; penstock run --resume {args.run_directory} resumes it")
    problems = read_status(args.run_directory).problems
    for problem in problems:
        _say(problem)
    return 1 if problems else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
