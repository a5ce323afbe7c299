"""`penstock simulate`: simulates a pipeline that a policy scales under a load."""

import argparse
import json
import sys
from pathlib import Path

from penstock.cli.options import add_pairs, add_seed, parse_pairs, read_initial, read_minutes
from penstock.cli.subcommands import add_command
from penstock.lab.simulation import default_simulation_directory, run_simulation
from penstock.reports.result_text import report
from penstock.reports.simulation_view import progress_observers, title
from penstock.reports.timeline import Timeline
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

EXAMPLES = """\
examples:
  penstock simulate                                   query 1, cosine load, DS2, as in the thesis
  penstock simulate --query q11 --policy dhalion --workload random --seed 1073
  penstock simulate --policy hpa-cpu --param target=0.9 --guard cooldown_s=120
  penstock simulate --engine spark --workload "cosine * 0.01" --initial source:2,mapper:1
  penstock simulate --policy hpa-varga --mode reactive --hindsight
  penstock simulate --profile monitor.busy_sees=1.0 --json --no-out

Defaults are in the profile of the engine. With --engine flink they follow the thesis:
  initial replicas   those of the query in the thesis
  budget             80 replicas
  max_increase       15 replicas per decision
  interval           15 s between decisions
  cooldown_s         300 s
  overprovision      1.2 for ds2
The profile spark sets no guard; real runs with ds2 had --guard overprovision=1.2.

--guard NAME=off switches a guard off. The run directory can be read by penstock explain and
penstock replay.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "simulate",
        summary="run a pipeline under a load in the simulator",
        description="Simulate one run and print its figures and charts, or JSON.",
        examples=EXAMPLES,
        run=run,
    )
    add, spec = parser.add_argument, SimulationSpec()
    for field, about in (
        ("query", "pipeline, or a .toml file"),
        ("workload", "see penstock workload"),
        ("policy", "see penstock policies"),
        ("engine", "profile, or a .toml file"),
    ):
        default = getattr(spec, field)
        add(f"--{field}", default=default, metavar="NAME", help=f"{about} (default: %(default)s)")
    about = "length (default: the workload's, usually 140)"
    add("--minutes", type=read_minutes, metavar="N", help=about)
    add_seed(parser)
    add_pairs(parser, "--param", "parameter of the policy")
    add_pairs(parser, "--guard", "guard, see penstock policies --guards")
    add_pairs(parser, "--workload-param", "parameter of the workload")
    add_pairs(parser, "--profile", "override a number of the profile: section.field=V")
    add("--initial", metavar="N", help="initial replicas: 5, or source:5,sink:2")
    about = "operator, or reactive: the same replicas for all operators"
    add("--mode", default="operator", metavar="M", help=about)
    add("--objective", type=float, metavar="S", help="latency objective (default: the pipeline's)")
    about = "time between decisions (default: the engine's)"
    add("--interval", type=float, metavar="S", help=about)
    about = "compare the cost with the hindsight optimum"
    add("--hindsight", action="store_true", help=about)
    add("--json", action="store_true", help="print the result as JSON")
    place = parser.add_mutually_exclusive_group()
    about = "run directory (default: runs/NAME-TIME)"
    place.add_argument("--out", type=Path, metavar="DIR", help=about)
    place.add_argument("--no-out", action="store_true", help="write no run directory")


def run(args: argparse.Namespace) -> int:
    """Simulate, write the run directory, print the result."""
    prepared = prepare_simulation(spec_of(args))
    directory = None
    if not args.no_out:
        directory = args.out or default_simulation_directory(prepared.spec)
    timeline = Timeline()
    observers = [timeline.add, *progress_observers(prepared)]
    result, _ = run_simulation(prepared, directory, observers=observers, hindsight=args.hindsight)
    if directory is not None:
        print(f"run directory: {directory}", file=sys.stderr)
    if args.json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        print("\n".join([title(prepared), "", *timeline.draw(), "", *report(result)]))
    return 0


def spec_of(args: argparse.Namespace) -> SimulationSpec:
    """Build the spec from the options."""
    return SimulationSpec(
        query=args.query,
        workload=args.workload,
        policy=args.policy,
        engine=args.engine,
        minutes=args.minutes,
        seed=args.seed,
        params=parse_pairs(args.param, "--param"),
        guards=parse_pairs(args.guard, "--guard"),
        workload_params=parse_pairs(args.workload_param, "--workload-param"),
        profile=parse_pairs(args.profile, "--profile"),
        initial=read_initial(args.initial),
        mode=args.mode,
        objective_s=args.objective,
        interval_s=args.interval,
    )
