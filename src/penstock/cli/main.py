"""The command `penstock`: results on stdout, messages on stderr, exit code 2 for user errors."""

import argparse
import io
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from penstock import __version__
from penstock.cli import commands as command_modules
from penstock.cli.options import configure_logging
from penstock.cli.parser import Parser, shorten
from penstock.errors import InputError, PenstockError, SignalInterrupt

#: Exit code of an internal error, as in sysexits.h.
EX_SOFTWARE = 70
#: If this environment variable is set, errors are printed with their traceback.
DEBUG = "PENSTOCK_DEBUG"

EXAMPLES = """\
examples:
  penstock policies                                 list the policies
  penstock decide --policy ds2 run.jsonl            what would DS2 decide?
  penstock decide --policy ds2 --explain run.jsonl  the same, with the reasons
  penstock simulate --policy ds2 --out runs/wave    simulate a run with DS2
  penstock explain runs/wave                        why did replicas change?
  penstock replay runs/wave --policy dhalion        what would Dhalion decide?
  penstock run images --speed-up 20                 run a pipeline on Spark
  penstock dashboard runs --open                    look at runs in a browser
  penstock top runs/images                          follow a run in the terminal
  penstock report runs/images                       one HTML page about a run
  penstock status runs/images                       health, also as exit code
  penstock stop runs/images                         stop after running batches
  penstock topics ls runs/images                    rows and readers of topics
  penstock lab run experiments/policies-on-cosine.toml    run a grid; then lab compare
  penstock reproduce thesis --seeds 5               check claims of a paper
"""


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Make the parser; every module in `commands/` is a command.

    If a command is named, only its module is loaded, which halves the start time.
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
        # characters that the terminal cannot show must not end a command
        sys.stdout.reconfigure(errors="backslashreplace")
    args = build_parser(argv[0] if argv else "").parse_args(argv)
    configure_logging(args)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except InputError as error:
        _print_error("\n".join(shorten(line) for line in str(error).splitlines()))
        return 2
    except PenstockError as error:
        # one line, for logs
        _print_error(shorten(" ".join(str(error).split())))
        return 1
    except BrokenPipeError:
        # the reader closed the pipe, as `| head` does; redirect stdout so that exit is quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SignalInterrupt as interrupt:
        return 128 + interrupt.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        _print_error(shorten(str(error)))
        return 1
    except Exception as error:
        text = shorten(" ".join(f"{type(error).__name__}: {error}".split()))
        _print_error(f"unexpected {text}\nhint: {_bug_hint(error)}")
        return EX_SOFTWARE


def _print_error(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    if os.environ.get(DEBUG):
        traceback.print_exc()


def _bug_hint(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119
    report = f"please report it with the command and the output of {DEBUG}=1"
    return f"this is a bug in penstock ({place}); {report}"
