"""Options of a run on Spark, and how they start it; `run` and `nexmark run` share them."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import add_pairs, add_seed, parse_pairs, read_initial, read_minutes
from penstock.control.registry import DEFAULT_POLICY
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.runs.execution import ExecutedRuns
    from penstock.runs.spec import SparkSpec


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, except for the pipeline and the directory."""
    add = parser.add_argument
    add("--workload", metavar="NAME", help="see penstock workload")
    about = "length of the workload or run (default: 2 minutes after --speed-up)"
    add("--minutes", type=read_minutes, metavar="N", help=about)
    about = "divide all times by X, keep the rates (default: %(default)g)"
    add("--speed-up", type=float, default=1.0, metavar="X", help=about)
    about = "multiply all rates by Y (default: %(default)g)"
    add("--rate-scale", type=float, default=1.0, metavar="Y", help=about)
    add_seed(parser)
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
    add_pairs(parser, "--param", "parameter of the policy")
    add_pairs(parser, "--guard", "guard, see penstock policies --guards")
    add_pairs(parser, "--workload-param", "parameter of the workload")
    add("--initial", metavar="N", help="initial replicas: 2, or resize:1,recognise:3")
    add("--objective", type=float, metavar="S", help="latency objective (default: the pipeline's)")
    add("--interval", type=float, metavar="S", help="time between decisions (default: 15)")
    about = "target length of a batch (default: %(default)s)"
    add("--batch", type=float, default=1.0, metavar="S", help=about)
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
    from penstock.runs.execution import compare_policies, resume_run, run_spec  # noqa: PLC0415
    from penstock.runs.preparation import LaunchOptions  # noqa: PLC0415

    _check_options(args)
    out = Path(args.out) if args.out else None
    options = LaunchOptions(
        available_now=args.available_now, allow_removal=tuple(args.allow_removal)
    )
    if args.compare is not None:
        names = [name.strip() for name in args.compare.split(",") if name.strip()]
        runs = compare_policies(
            read_run_spec(args),
            names,
            lambda prefix: ScreenView(plain=args.plain, prefix=prefix),
            out,
        )
    elif args.resume is not None:
        runs = resume_run(Path(args.resume), ScreenView(plain=args.plain), options)
    else:
        runs = run_spec(read_run_spec(args), ScreenView(plain=args.plain), out, options)
    return _print_results(runs, args)


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
        build_args=parse_pairs(args.set, "--set"),
        initial=read_initial(args.initial),
        dry_run=args.dry_run,
        batch_s=args.batch,
        master=args.master,
        executors=args.executors,
        journal_mb=args.journal_mb,
        retry_minutes=args.retry_for,
    )


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if args.resume is not None:
        given = args.pipeline or args.policy or args.compare or args.param or args.guard
        if given or args.set or args.master or args.executors:
            hint = "use --resume DIR without them, or start another run"
            raise InputError("--resume", "takes its options from run.toml", hint)
    elif args.pipeline is None:
        raise InputError("PIPELINE", "missing", "such as images, or --resume DIR")
    elif args.compare is not None and args.param:
        hint = "omit --param, or run each policy with --policy NAME --param K=V"
        raise InputError("--param", "cannot be combined with --compare", hint)


def _print_results(runs: "ExecutedRuns", args: argparse.Namespace) -> int:
    """Print the results and return the exit code."""
    from penstock.reports.spark_result_text import comparison, report  # noqa: PLC0415

    print(f"run directory: {runs.directory}", file=sys.stderr)
    results = {name: outcome.result for name, outcome in runs.outcomes.items()}
    single = results.get("")
    if args.json:
        data = {name: result.to_json() for name, result in results.items()}
        print(json.dumps(data if single is None else data[""], indent=2))
    elif single is not None:
        print("\n".join(report(single, runs.directory)))
    else:
        print("\n".join(comparison(results, runs.directory)))
    return runs.code
