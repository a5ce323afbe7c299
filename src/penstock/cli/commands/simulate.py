"""`penstock simulate`: simulates a pipeline that a policy scales under a load."""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from penstock.cli.options import parse_pairs, read_initial, read_minutes
from penstock.cli.subcommands import add_command
from penstock.control.loop import Tick
from penstock.core.numbers import pretty
from penstock.errors import PenstockError
from penstock.reports.result_text import report
from penstock.reports.terminal import can_redraw
from penstock.reports.text_charts import minutes
from penstock.reports.timeline import Timeline
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run, default_place, finish_run
from penstock.runs.simulated_run import PreparedSimulation, prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.workloads.pattern import SEED

EXAMPLES = """\
examples:
  penstock simulate                                   query 1, cosine load, DS2, as in the thesis
  penstock simulate --query q11 --policy dhalion --workload random --seed 1073
  penstock simulate --policy hpa-cpu --param target=0.9 --guard cooldown_s=120
  penstock simulate --engine spark --workload "cosine * 0.01" --initial source:2,mapper:1
  penstock simulate --policy hpa-varga --mode reactive --hindsight
  penstock simulate --profile monitor.busy_sees=1.0 --json --no-out

Defaults follow the thesis:
  initial replicas   those of the query in the thesis
  budget             80 replicas
  max_increase       15 replicas per decision
  interval           15 s between decisions
  cooldown_s         300 s
  overprovision      where a paper states it

--guard NAME=off switches a guard off. The run directory can be read by penstock explain and
penstock replay.
"""
#: With more records, an engine that simulates each record takes minutes.
_MANY = 10_000_000


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
    _add_what(parser)
    _add_how(parser)
    parser.add_argument(
        "--hindsight", action="store_true", help="compare the cost with the hindsight optimum"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--out", metavar="DIR", help="run directory (default: runs/NAME-TIME)")
    place.add_argument("--no-out", action="store_true", help="write no run directory")


def _add_what(parser: argparse.ArgumentParser) -> None:
    spec = SimulationSpec()
    add = parser.add_argument
    add(
        "--query",
        default=spec.query,
        metavar="NAME",
        help="pipeline, or a .toml file (default: %(default)s)",
    )
    add(
        "--workload",
        default=spec.workload,
        metavar="NAME",
        help="see penstock workload (default: %(default)s)",
    )
    add(
        "--policy",
        default=spec.policy,
        metavar="NAME",
        help="see penstock policies (default: %(default)s)",
    )
    add(
        "--engine",
        default=spec.engine,
        metavar="NAME",
        help="profile, or a .toml file (default: %(default)s)",
    )
    add(
        "--minutes",
        type=read_minutes,
        metavar="N",
        help="length (default: the workload's, usually 140)",
    )
    add("--seed", type=int, default=SEED, metavar="S", help="random seed (default: %(default)s)")


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for option, about in (
        ("--param", "parameter of the policy"),
        ("--guard", "guard, see penstock policies --guards"),
        ("--workload-param", "parameter of the workload"),
        ("--profile", "override a number of the profile: section.field=V"),
    ):
        add(option, action="append", default=[], metavar="K=V", help=about)
    add("--initial", metavar="N", help="initial replicas: 5, or source:5,sink:2")
    add(
        "--mode",
        default="operator",
        metavar="M",
        help="operator, or reactive: the same replicas for all operators",
    )
    add("--objective", type=float, metavar="S", help="latency objective (default: the pipeline's)")
    add(
        "--interval", type=float, metavar="S", help="time between decisions (default: the engine's)"
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, write the run directory, print the result."""
    prepared = prepare_simulation(spec_of(args))
    compare = _hindsight(prepared) if args.hindsight else None
    directory = _directory(args, prepared.spec)
    timeline = Timeline()
    watchers: list[Callable[[Tick], None]] = [timeline.add, *_progress(prepared)]
    with ExitStack() as stack:
        if directory is not None:
            journal = begin_run(directory, prepared.spec.to_json(), prepared.header())
            watchers.append(stack.enter_context(journal).write)
        try:
            result = prepared.run(partial(_tell, watchers))
        except PenstockError:  # some mistakes show at a decision only; leave no half a run
            if directory is not None:
                shutil.rmtree(directory)
            raise
    if compare is not None:
        result = compare(result)
    if directory is not None:
        finish_run(directory, result)
        print(f"run directory: {directory}", file=sys.stderr)
    if args.json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        print("\n".join([title(prepared), "", *timeline.draw(), "", *report(result)]))
    return 0


def _tell(watchers: Iterable[Callable[[Tick], None]], tick: Tick) -> None:
    for watch in watchers:
        watch(tick)


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


def title(prepared: PreparedSimulation) -> str:
    """Return one line that describes the run."""
    spec = prepared.spec
    length = minutes(prepared.schedule.duration_s)
    mode = "" if spec.mode == "operator" else f", {spec.mode}"
    head = f"{spec.query} under {spec.workload}, {spec.policy} on {spec.engine}{mode}"
    return f"{head}, {length}, seed {spec.seed}"


def _directory(args: argparse.Namespace, spec: SimulationSpec) -> Path | None:
    if args.no_out:
        return None
    if args.out is not None:
        return Path(args.out)
    now = time.strftime("%Y%m%d-%H%M%S")
    return default_place((spec.query, spec.workload, spec.policy), now, Path("runs"))


def _progress(prepared: PreparedSimulation) -> list[Callable[[Tick], None]]:
    """Return a progress display for a long run on a terminal."""
    records = prepared.load.total_records
    if prepared.profile.resolution != "records" or records < _MANY:
        return []
    engine = prepared.spec.engine
    print(
        f"{engine} follows each of {pretty(records)} records, which takes minutes", file=sys.stderr
    )
    if not can_redraw(sys.stderr):
        return []
    end_s = prepared.schedule.duration_s

    def show(tick: Tick) -> None:
        end = "\n" if tick.at >= end_s else ""
        print(f"\r{100 * tick.at / end_s:3.0f} %", end=end, file=sys.stderr, flush=True)

    return [show]


def _hindsight(prepared: PreparedSimulation) -> Callable[[RunResult], RunResult]:
    """Return a function that compares a result with the hindsight optimum."""
    # imported here because it takes long to load, and most runs do not need it
    from penstock.lab.hindsight.cheapest_run import compare_cost, compute_hindsight  # noqa: PLC0415

    bound = compute_hindsight(prepared)

    def compare(result: RunResult) -> RunResult:
        hours = result.scores.replica_hours if result.scores is not None else 0.0
        cost = compare_cost(hours, bound.replica_hours, feasible=bound.feasible)
        return replace(result, hindsight=cost)

    return compare
