"""`penstock dashboard`: shows runs in a browser, live or finished."""

import argparse
from pathlib import Path

from penstock.cli.subcommands import add_command

EXAMPLES = """\
examples:
  penstock dashboard                       all runs below runs/
  penstock dashboard runs/images --open    one run; open the browser
  penstock dashboard /srv/runs --host 0.0.0.0 --port 8750 --allow-host ops.example

The page reads run directories only; it needs no network and does not disturb a live run. It
listens to this machine only, unless --host says otherwise; then every request needs the token,
which is a part of the printed address. To pause, pin, bound or dry-run a running loop always
needs the token; the journal says who asked.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "dashboard",
        summary="show runs in a browser, live or finished",
        description="Serve a page that shows runs: pipeline, curves, decisions, health.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    about = "run directory, or a directory with runs (default: runs)"
    add("directory", nargs="?", type=Path, default=Path("runs"), metavar="RUN|DIR", help=about)
    add("--port", type=int, default=8750, metavar="N", help="port (default: %(default)s)")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address (default: %(default)s)")
    about = "another name of this server, such as a proxy's; may be repeated"
    add("--allow-host", action="append", default=[], metavar="NAME", help=about)
    about = "file with the token (default: a new random one)"
    add("--token-file", type=Path, metavar="FILE", help=about)
    add("--open", action="store_true", help="open the page in a browser")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    # imported here because it loads a web server, which other commands do not need
    from penstock.dashboard.server import prepare_dashboard, serve_dashboard  # noqa: PLC0415
    from penstock.files.text import read_text  # noqa: PLC0415

    token = read_text(args.token_file).strip() if args.token_file else ""
    prepared = prepare_dashboard(
        args.directory, host=args.host, port=args.port, token=token, names=args.allow_host
    )
    serve_dashboard(prepared, opens_browser=args.open)
    return 0
