"""The command `penstock`. Data goes to stdout, talk to stderr; exit code 2: you can mend it."""

import argparse
import io
import os
import pkgutil
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from penstock import __version__
from penstock.cli import commands as command_modules
from penstock.cli.parser import Parser, shorten
from penstock.errors import InputError, PenstockError

#: An exit code for what should never happen, as sysexits.h has it.
EX_SOFTWARE = 70
#: An environment variable that shows the traceback of a failure.
DEBUG = "PENSTOCK_DEBUG"

EXAMPLES = """\
examples:
  penstock policies                                 which policies there are
  penstock decide --policy ds2 run.jsonl            what would DS2 do here?
  penstock decide --policy ds2 --explain run.jsonl  and why?
  penstock simulate --policy ds2 --out runs/wave    what happens if DS2 drives a pipeline?
  penstock explain runs/wave                        why did it change, and why not?
  penstock replay runs/wave --policy dhalion        what would Dhalion have answered there?
  penstock status runs/images                       how is it? the exit code tells
  penstock stop runs/images                         stop it gently
  penstock topics ls runs/images                    what waits in a run's topics?
  penstock lab run experiments/policies-on-cosine.toml    many runs; then lab compare
  penstock reproduce thesis --seeds 5               what do papers claim, and what comes out?
"""


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Make the parser; every module in `commands/` is a command.

    If a command is named, only its module is loaded, which saves half of the start.
    """
    parser = Parser(
        prog="penstock",
        description="Elastic stream processing on Spark.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    names = [info.name for info in pkgutil.iter_modules(command_modules.__path__)]
    for name in [command, *names] if command in names else names:
        module = import_module(f"{command_modules.__name__}.{name}")
        module.add_parser(commands)
        if name == command:
            break
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a name that is not Unicode, or a terminal that is not, must not end a command
        sys.stdout.reconfigure(errors="backslashreplace")
    args = build_parser(argv[0] if argv else "").parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except InputError as error:
        _tell("\n".join(shorten(line) for line in str(error).splitlines()))
        return 2
    except PenstockError as error:
        # nothing that a hint below could mend: one line, for logs
        _tell(shorten(" ".join(str(error).split())))
        return 1
    except BrokenPipeError:
        # somebody closed the pipe, as `| head` does; point stdout elsewhere so exit is quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _tell(shorten(str(error)))
        return 1
    except Exception as error:
        what = shorten(" ".join(f"{type(error).__name__}: {error}".split()))
        _tell(f"unexpected {what}\nhint: {_where(error)}; please report it with this command")
        return EX_SOFTWARE


def _tell(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    if os.environ.get(DEBUG):
        traceback.print_exc()


def _where(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119
    return f"a fault of penstock in {place}, not yours; {DEBUG}=1 shows more"
