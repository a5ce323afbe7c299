"""`penstock stop`: ask a live run to stop at the end of its batches, and wait for it."""

import argparse
import math
import sys
from pathlib import Path

from penstock.errors import InputError

#: As `penstock status` has it.
NOT_RUNNING = 3
EXAMPLES = """\
examples:
  penstock stop runs/orders                  stop gently, and wait until it has stopped
  penstock stop runs/orders --timeout 10     do not wait for longer than this
  penstock run --resume runs/orders          go on where it was stopped

It is asked as TERM asks: running batches end, and nothing is lost. A second `penstock stop` while
it stops ends it at once; nothing is lost then either.

exit codes: 0 stopped, 1 still there after --timeout, 2 RUN is no run, 3 it was not running.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "stop",
        help="stop a live run at the end of its batches",
        description="Ask a live run to stop at the end of its batches, and wait for it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run_directory", metavar="RUN", type=Path, help="the directory of a run")
    about = "seconds to wait for it at most (%(default)g)"
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help=about)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Stop it."""
    from penstock.runs.run_stop import stop_run  # noqa: PLC0415  (loads Arrow)

    if not 0 <= args.timeout < math.inf:
        raise InputError("--timeout", f"must be at least 0 and finite, got {args.timeout:g}")
    if not stop_run(args.run_directory, args.timeout, _say):
        _say(f"{args.run_directory} is not running")
        return NOT_RUNNING
    _say(f"{args.run_directory} has stopped; penstock run --resume {args.run_directory} goes on")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
