"""Options of a run on Spark, and how they start it; `run` and `nexmark run` share them."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import parse_pairs, read_initial, read_minutes
from penstock.control.registry import DEFAULT_POLICY
from penstock.errors import InputError
from penstock.workloads.pattern import SEED

if TYPE_CHECKING:
    from penstock.runs.execution import RunOutcome
    from penstock.runs.spec import SparkSpec


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, except for the pipeline and the directory."""
    add = parser.add_argument
    add("--workload", metavar="NAME", help="see penstock workload")
    add(
        "--minutes",
        type=read_minutes,
        metavar="N",
        help="length of the workload or run (default: 2 minutes after --speed-up)",
    )
    add(
        "--speed-up",
        type=float,
        default=1.0,
        metavar="X",
        help="divide all times by X, keep the rates (default: %(default)g)",
    )
    add(
        "--rate-scale",
        type=float,
        default=1.0,
        metavar="Y",
        help="multiply all rates by Y (default: %(default)g)",
    )
    add("--seed", type=int, default=SEED, metavar="S", help="random seed (default: %(default)s)")
    policies = parser.add_mutually_exclusive_group()
    policies.add_argument(
        "--policy", metavar="NAME", help=f"see penstock policies (default: {DEFAULT_POLICY})"
    )
    policies.add_argument(
        "--compare", metavar="A,B,..", help="run these policies one after the other"
    )
    _add_how(parser)
    add("--plain", action="store_true", help="print one line per decision instead of a live view")


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for option, about in (
        ("--param", "parameter of the policy"),
        ("--guard", "guard, see penstock policies --guards"),
        ("--workload-param", "parameter of the workload"),
    ):
        add(option, action="append", default=[], metavar="K=V", help=about)
    add("--initial", metavar="N", help="initial replicas: 2, or resize:1,recognise:3")
    add("--objective", type=float, metavar="S", help="latency objective (default: the pipeline's)")
    add("--interval", type=float, metavar="S", help="time between decisions (default: 15)")
    add(
        "--batch",
        type=float,
        default=1.0,
        metavar="S",
        help="target length of a batch (default: %(default)s)",
    )
    about = "restart failing operators for this long (default: no limit; 5 with @produces)"
    add("--retry-for", type=float, metavar="MINUTES", help=about)
    add("--dry-run", action="store_true", help="decide, but change nothing")
    about = "maximum size of the journal in MB (default: 80)"
    add("--journal-mb", type=float, metavar="N", help=about)
    add(
        "--master", metavar="M", help="local-cluster[WORKERS,CORES,MB], or local[N] for one process"
    )
    add("--executors", metavar="A:B", help="minimum and maximum executors (default: 1:WORKERS)")


def run_pipeline(args: argparse.Namespace) -> int:
    """Run the pipeline and print the result."""
    # imported here because it loads Spark, which other commands do not need
    from penstock.reports.run_view import ScreenView  # noqa: PLC0415
    from penstock.runs.execution import (  # noqa: PLC0415
        default_directory,
        execute,
        execute_all,
        prepare_policies,
    )
    from penstock.runs.spark_preparation import prepare_spark_run  # noqa: PLC0415
    from penstock.runs.spec import read_spec  # noqa: PLC0415

    view = ScreenView(plain=args.plain)
    if args.resume is not None:
        _refuse_others(args)
        directory = Path(args.resume)
        prepared = prepare_spark_run(read_spec(directory))
        execution = execute(prepared, directory, view, args.allow_removal)
        return _show_all({"": execution}, directory, args)
    if args.pipeline is None:
        raise InputError("PIPELINE", "missing", "such as images, or --resume DIR")
    spec = read_run_spec(args)
    if args.compare is None:
        prepared = prepare_spark_run(spec)
        directory = Path(args.out) if args.out else default_directory(prepared, spec.policy)
        execution = execute(prepared, directory, view, args.allow_removal)
        return _show_all({"": execution}, directory, args)
    if args.param:
        hint = "omit --param, or run each policy with --policy NAME --param K=V"
        raise InputError("--param", "cannot be combined with --compare", hint)
    names = [name.strip() for name in args.compare.split(",") if name.strip()]
    runs = prepare_policies(spec, names)
    first = next(iter(runs.values()), None)
    if first is None:
        raise InputError("--compare", "names no policy", "see penstock policies")
    directory = Path(args.out) if args.out else default_directory(first, "compare")
    executions = execute_all(
        runs, directory, lambda prefix: ScreenView(plain=args.plain, prefix=prefix)
    )
    return _show_all(executions, directory, args)


def read_run_spec(args: argparse.Namespace) -> "SparkSpec":
    """Build the spec from the options."""
    from penstock.runs.spec import SparkSpec  # noqa: PLC0415

    return SparkSpec(
        pipeline=args.pipeline,
        workload=args.workload,
        policy=args.policy or DEFAULT_POLICY,
        params=parse_pairs(args.param, "--param"),
        guards=parse_pairs(args.guard, "--guard"),
        workload_params=parse_pairs(args.workload_param, "--workload-param"),
        speed_up=args.speed_up,
        rate_scale=args.rate_scale,
        minutes=args.minutes,
        seed=args.seed,
        objective_s=args.objective,
        interval_s=args.interval,
        numbers=parse_pairs(args.set, "--set"),
        initial=read_initial(args.initial),
        dry_run=args.dry_run,
        batch_s=args.batch,
        master=args.master,
        executors=args.executors,
        journal_mb=args.journal_mb,
        retry_minutes=args.retry_for,
    )


def _refuse_others(args: argparse.Namespace) -> None:
    """Refuse options that would change a resumed run."""
    given = args.pipeline or args.policy or args.compare or args.param or args.guard or args.set
    if given or args.master or args.executors:
        hint = "use --resume DIR without them, or start another run"
        raise InputError("--resume", "takes its options from run.toml", hint)


def _show_all(
    executions: Mapping[str, "RunOutcome"], directory: Path, args: argparse.Namespace
) -> int:
    """Print the results and return the exit code; a single run has the name ""."""
    from penstock.reports.spark_result_text import comparison, report  # noqa: PLC0415

    print(f"run directory: {directory}", file=sys.stderr)
    results = {name: execution.result for name, execution in executions.items()}
    single = results.get("")
    if args.json:
        data = {name: result.to_json() for name, result in results.items()}
        print(json.dumps(data if single is None else data[""], indent=2))
    elif single is not None:
        print("\n".join(report(single, directory)))
    else:
        print("\n".join(comparison(results, directory)))
    return max(execution.code for execution in executions.values())
