"""Options of a run on Spark, and how they start it; `run` and `nexmark run` share them."""

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from penstock.cli.options import add_pairs, add_seed, parse_pairs, read_initial, read_minutes
from penstock.control.registry import DEFAULT_POLICY
from penstock.errors import InputError
from penstock.extras import check_optional

if TYPE_CHECKING:
    from penstock.runs.execution import ExecutedRuns, RunView
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
    about = "loop: a policy decides; none: each replica decides alone (default: loop)"
    add("--controller", choices=("loop", "none"), help=about)
    _add_how(parser)
    add("--plain", action="store_true", help="print one line per decision instead of a live view")
    about = "serve metrics for Prometheus at this port of 127.0.0.1; 0 takes a free one"
    add("--metrics-port", type=int, metavar="N", help=about)
    about = "serve metrics at another address"
    add("--metrics-host", default="127.0.0.1", metavar="ADDRESS", help=about)


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
    about = "start batches at once while their overhead takes less than this share of the machine"
    add("--overhead-share", type=float, metavar="X", help=f"{about} (default: every 0.5 s)")
    about = "on: neighbouring operators run as one query where they can (default: off)"
    add("--chain", choices=("on", "off"), help=about)
    about = "restart failing operators for this long (default: no limit; 5 with @produces)"
    add("--retry-for", type=float, metavar="MINUTES", help=about)
    add("--dry-run", action="store_true", help="decide, but change nothing")
    about = "maximum size of the journal in MB (default: 80)"
    add("--journal-mb", type=float, metavar="N", help=about)
    about = "spark://HOST:PORT, local-cluster[WORKERS,CORES,MB], or local[N] for one process"
    add("--master", metavar="M", help=about)
    add("--executors", metavar="A:B", help="minimum and maximum executors (default: 1:WORKERS)")
    about = "keep rows between operators in Kafka: kafka://host:port/prefix, see docs/kafka.md"
    add("--topics", metavar="ADDRESS", help=about)
    add("--topics-properties", metavar="FILE", help="settings of Kafka's clients for --topics")
    add_pairs(parser, "--conf", "setting of Spark on a cluster, such as spark.executor.cores=2")


def run_pipeline(args: argparse.Namespace) -> int:
    """Run the pipeline and print the result."""
    # imported here because it loads Spark, which other commands do not need
    from penstock.runs.execution import compare_policies, resume_run, run_spec  # noqa: PLC0415
    from penstock.runs.preparation import LaunchOptions  # noqa: PLC0415

    _check_options(args)
    out = Path(args.out) if args.out else None
    options = LaunchOptions(
        available_now=args.available_now,
        allow_removal=tuple(args.allow_removal),
        standby=args.standby,
    )
    if args.compare is not None:
        names = [name.strip() for name in args.compare.split(",") if name.strip()]
        runs = compare_policies(
            read_run_spec(args),
            names,
            lambda prefix: _view(args, prefix),
            out,
        )
    elif args.resume is not None:
        runs = resume_run(Path(args.resume), _view(args), options)
    else:
        runs = run_spec(read_run_spec(args), _view(args), out, options)
    return _print_results(runs, args)


def _view(args: argparse.Namespace, prefix: str = "") -> "RunView":
    """Return the view of a run, which serves its metrics if asked to."""
    from penstock.reports.run_view import ScreenView  # noqa: PLC0415

    view = ScreenView(plain=args.plain, prefix=prefix)
    if args.metrics_port is None:
        return view
    from penstock.prometheus.metrics_server import MeteredView  # noqa: PLC0415

    check_optional("prometheus_client", "--metrics-port")
    return MeteredView(view, args.metrics_port, args.metrics_host)


def read_run_spec(args: argparse.Namespace) -> "SparkSpec":
    """Build the spec from the options."""
    from penstock.runs.spec import SparkSpec, default_policy  # noqa: PLC0415

    return SparkSpec(
        pipeline=args.pipeline,
        workload=args.workload,
        policy=args.policy or default_policy(args.controller),
        controller=args.controller,
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
        overhead_share=args.overhead_share,
        conf=parse_pairs(args.conf, "--conf"),
        chain=args.chain,
        topics=args.topics,
        topics_properties=args.topics_properties,
    )


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if args.resume is not None:
        given = args.pipeline or args.policy or args.compare or args.param or args.guard
        others = args.set or args.master or args.executors or args.conf or args.chain
        if given or args.controller or others or args.topics:
            hint = "use --resume DIR without them, or start another run"
            raise InputError("--resume", "takes its options from run.toml", hint)
    elif args.standby and not (args.out or args.resume):
        hint = "name its directory with --out DIR or --resume DIR"
        raise InputError("--standby", "waits beside a run in the same directory", hint)
    elif args.pipeline is None:
        raise InputError("PIPELINE", "missing", "such as images, or --resume DIR")
    elif args.compare is not None and args.topics:
        hint = "run each policy with --policy NAME and another prefix"
        raise InputError("--topics", "is for one run: two would write to the same topics", hint)
    elif args.compare is not None and args.controller == "none":
        hint = "omit --compare; penstock lab run compares runs with and without a controller"
        raise InputError("--compare", "names policies, which need --controller loop", hint)
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
    _write_report(runs, sys.stderr if args.json else sys.stdout)
    return runs.code


def _write_report(runs: "ExecutedRuns", stream: TextIO) -> None:
    """Write the HTML page of the runs and print its path, if jinja2 is there."""
    from penstock.reports.run_report import REPORT, is_long, write_report  # noqa: PLC0415

    directories = [runs.directory / name for name in runs.outcomes]
    if find_spec("jinja2") is None:
        return
    if any(map(is_long, directories)):  # whoever stops it does not want to wait for a minute
        print(f"penstock report {runs.directory} writes a page about it", file=stream)
        return
    path = runs.directory / REPORT
    try:
        write_report(directories, path)
    except InputError as error:  # the run itself is as good as before
        print(f"warning: no report: {error}", file=sys.stderr)
        return
    print(f"report: {path}", file=stream)
