"""`penstock top`: follows a run in the terminal."""

import argparse
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.subcommands import add_command

if TYPE_CHECKING:
    from penstock.reports.top_view import RunWatch

EXAMPLES = """\
examples:
  penstock top runs/images             q or Ctrl-C quits; the run continues
  penstock top runs/images | tee log   one line per tick, until the run ends

The command only reads the run directory. Filled dots are running replicas, empty dots requested
ones. A triangle marks a bottleneck: it holds others back, or gets more than it can process.
"blocked" is the share of time in which an operator waits for those that follow.
"""
#: Seconds between two looks, and ticks that are printed first where there is no terminal.
_POLL_S, _FIRST = 0.5, 10


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "top",
        summary="follow a run in the terminal",
        description="Show operators, load, latency and decisions of a run, live.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("run_directory", metavar="RUN", type=Path, help="run directory")
    parser.add_argument("--plain", action="store_true", help="print one line per tick")


def run(args: argparse.Namespace) -> int:
    """Follow until the user quits, or without a terminal until the run ends."""
    # imported here because it loads NumPy, which other commands do not need
    from penstock.reports.top_view import RunWatch  # noqa: PLC0415

    watch = RunWatch(args.run_directory)
    watch.refresh()
    try:
        if args.plain or not sys.stdout.isatty():
            _print_lines(watch)
        else:
            _draw(watch)
    except KeyboardInterrupt:
        return 0
    return 0


def _print_lines(watch: "RunWatch") -> None:
    from penstock.reports.top_view import plain_lines  # noqa: PLC0415

    print(watch.title, flush=True)
    seen = max(0, len(watch.index) - _FIRST)
    while True:
        state = watch.state  # before the ticks: a run that ends writes its last tick first
        watch.refresh()
        for line in plain_lines(watch.last_ticks(len(watch.index) - seen)):
            print(line, flush=True)
        seen = len(watch.index)
        if state not in ("running", "ending"):
            print(state, flush=True)
            return
        time.sleep(_POLL_S)


def _draw(watch: "RunWatch") -> None:
    from penstock.extras import import_optional  # noqa: PLC0415
    from penstock.reports.top_view import draw_top  # noqa: PLC0415

    console = import_optional("rich.console", "penstock top").Console()
    live = import_optional("rich.live", "penstock top")
    with (
        _single_keys(),
        live.Live(console=console, screen=True, auto_refresh=False) as screen,
    ):
        while True:
            watch.refresh()
            screen.update(draw_top(watch, *console.size), refresh=True)
            if _read_key(_POLL_S) in ("q", "Q", "\x1b", "\x04"):
                return


def _read_key(seconds: float) -> str:
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.read(1) if ready else ""


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys without Enter, and restore the terminal in the end."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
