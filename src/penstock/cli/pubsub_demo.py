"""The verb `demo` of `penstock pubsub`."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from penstock.cli.subcommands import add_verb
from penstock.errors import InputError
from penstock.extras import check_optional

EXAMPLES = """\
examples:
  penstock pubsub demo
  penstock pubsub demo --local              without Spark: starts at once, does not scale
  penstock pubsub demo --seconds 40 --peak 800 --json

Stock ticks are published over HTTP at a rate that rises and falls; three clients
subscribe with predicates and follow their events. The pipeline runs on Spark. The
view shows the load, the events and their delay, and the slices on their replicas
or hosts. Afterwards every event is compared with brute force.

exit codes:
  0  every subscriber got exactly the events that match, each once
  1  some were missing or doubled, or the engine did not start
  2  wrong options
"""


def add_demo_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb with its options."""
    about = "stock ticks, three subscribers, a load that rises and falls, hosts that follow it"
    add = add_verb(verbs, "demo", about, EXAMPLES, run).add_argument
    about = "how long ticks are published (default: %(default)s)"
    add("--seconds", type=float, default=60.0, metavar="S", help=about)
    about = "ticks/s at the top (default: %(default)s)"
    add("--peak", type=float, default=2000.0, metavar="N", help=about)
    add("--local", action="store_true", help="without Spark, in this process")
    about = "keep the service in this directory (default: a temporary one)"
    add("--dir", type=Path, metavar="DIR", help=about)


def run(args: argparse.Namespace) -> int:
    """Run the demo and print what came out."""
    for package in ("starlette", "uvicorn", "sse_starlette", "httpx"):
        check_optional(package, "penstock pubsub demo", "pubsub")
    for option, value in (("--seconds", args.seconds), ("--peak", args.peak)):
        if not 1 <= value <= 100_000:
            raise InputError(option, f"must be from 1 to 100000, got {value:g}")

    from penstock.pubsub.demo import DemoSpec, run_demo  # noqa: PLC0415
    from penstock.pubsub.demo_service import open_demo_service  # noqa: PLC0415
    from penstock.reports.pubsub_demo_view import (  # noqa: PLC0415
        DemoView,
        demo_json,
        demo_text,
    )

    spec = DemoSpec(seconds=args.seconds, peak_per_s=args.peak)
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as temporary:
        directory = args.dir or Path(temporary) / "service"
        _say("starting the service" if args.local else "starting the service and Spark")
        with open_demo_service(directory, is_local=args.local) as service:
            _say(f"page: {service.page}")
            with DemoView(spec) as view:
                result = run_demo(spec, service.connect, view.show, _say)
    print(json.dumps(demo_json(result)) if args.json else demo_text(result))
    return 0 if result.is_right else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
