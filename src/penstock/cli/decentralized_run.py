"""The verb `run` of `penstock decentralized`: a pipeline of processes that scale themselves."""

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from penstock.cli.options import add_seed
from penstock.cli.subcommands import add_verb
from penstock.decentralized.processes.functions import MAX_OPERATORS
from penstock.decentralized.processes.load import LOADS
from penstock.decentralized.processes.process_run import run_processes
from penstock.decentralized.processes.run_monitor import RunSample
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.processes.sample_ticks import record_processes, write_end, write_sample
from penstock.decentralized.processes.simulator_figures import figures_of_run, simulate_load
from penstock.errors import InputError
from penstock.reports.canvas import check_ending
from penstock.reports.process_run_picture import draw_process_run
from penstock.reports.process_run_text import report
from penstock.reports.process_view import ProcessView

EXAMPLES = """\
examples:
  penstock decentralized run
  penstock decentralized run --operators 5 --instances 3 --seconds 60 --min-actions 200
  penstock decentralized run --load brownian --delay-ms 0:50 --seed 7 --json
  penstock decentralized run --picture run.svg
  penstock decentralized run --out runs/processes

Every instance is a process that talks over TCP on this machine. It listens on
loopback only and refuses connections without the token of the run. It decides
alone, from its own load and the number of its siblings. Service times are
emulated by waiting, so many instances run on few cores. The load lasts until
--seconds have passed and --min-actions actions have ended, but at most five
times --seconds. Then the simulator runs under the same load, and its figures
stand beside those of the processes.

exit codes:
  0  every operator has processed every record exactly once
  1  not exactly once, too few actions, a process died, or a port is taken
  2  wrong options; fix them first
"""


def add_run_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb with its options."""
    about = "run a pipeline of real processes that scale themselves"
    verb = add_verb(verbs, "run", about, EXAMPLES, run)
    add, spec = verb.add_argument, ProcessRunSpec()
    default = "(default: %(default)s)"
    about = f"operators of the pipeline, 1 to {MAX_OPERATORS} {default}"
    add("--operators", type=int, default=spec.operators, metavar="N", help=about)
    about = f"instances of each operator at the start {default}"
    add("--instances", type=int, default=spec.instances, metavar="N", help=about)
    about = f"how long the load lasts at least {default}"
    add("--seconds", type=float, default=spec.seconds, metavar="S", help=about)
    add_seed(verb)
    verb.set_defaults(seed=spec.seed)
    about = f"random delay of every message, in milliseconds {default}"
    add("--delay-ms", default="0:20", metavar="LOW:HIGH", help=about)
    add("--load", default=spec.load, metavar="NAME", help=f"{' or '.join(LOADS)} {default}")
    about = f"the load lasts until so many scaling actions have ended {default}"
    add("--min-actions", type=int, default=spec.min_actions, metavar="N", help=about)
    about = f"records/s that one instance can process {default}"
    add("--capacity", type=float, default=spec.capacity, metavar="N", help=about)
    about = f"time between two decisions of an instance {default}"
    add("--interval", type=float, default=spec.interval_s, metavar="S", help=about)
    about = "listen on this port and the following ones (default: any free ports)"
    add("--port", type=int, default=spec.port, metavar="P", help=about)
    about = "draw load and instances over time: .svg, .png or .pdf"
    add("--picture", type=Path, metavar="FILE", help=about)
    about = "run directory, which penstock dashboard and top follow while it runs"
    add("--out", type=Path, metavar="DIR", help=about)


def run(args: argparse.Namespace) -> int:
    """Run the processes, show them, print the result."""
    spec = ProcessRunSpec(
        operators=args.operators,
        instances=args.instances,
        seconds=args.seconds,
        seed=args.seed,
        delay_ms=read_delays(args.delay_ms),
        load=args.load,
        min_actions=args.min_actions,
        capacity=args.capacity,
        interval_s=args.interval,
        port=args.port,
    )
    spec.check()
    if args.picture is not None:
        check_ending(args.picture)
    with ExitStack() as stack:
        record = None
        if args.out is not None:
            record = stack.enter_context(record_processes(args.out, spec))
        view = stack.enter_context(ProcessView(spec))

        def observe(sample: RunSample) -> None:
            view.show(sample)
            if record is not None:
                write_sample(record, sample)

        result = run_processes(spec, observe)
        if record is not None:
            write_end(record, result)
    if args.picture is not None:
        draw_process_run(result, args.picture)
        print(f"wrote {args.picture}", file=sys.stderr)
    simulated = simulate_load(result)
    if args.json:
        figures = {"processes": figures_of_run(result), "simulator": simulated}
        under_load = {name: each and each.to_json() for name, each in figures.items()}
        print(json.dumps({**result.to_json(), "under_load": under_load}, indent=2))
    else:
        print("\n".join(report(result, simulated)))
    return 1 if result.problems else 0


def read_delays(text: str) -> tuple[float, float]:
    """Read the shortest and the longest delay.

    >>> read_delays("0:20"), read_delays("5")
    ((0.0, 20.0), (5.0, 5.0))
    """
    low, _, high = text.partition(":")
    try:
        return float(low), float(high or low)
    except ValueError:
        problem = f"must be milliseconds, LOW:HIGH, got {text!r}"
        raise InputError("--delay-ms", problem, "such as 0:20") from None
