"""`penstock run`: a pipeline on Spark under a load, scaled by a policy while it runs."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.options import parse_pairs, read_minutes
from penstock.cli.simulate import read_initial
from penstock.errors import InputError
from penstock.workloads.pattern import SEED

if TYPE_CHECKING:
    from penstock.lab.spark_spec import SparkSpec

EXAMPLES = """\
examples:
  penstock run images --workload pulsar --speed-up 20       two minutes that are worth watching
  penstock run images --policy ds2 --guard overprovision=1.2 --set service_s=0.2
  penstock run images --compare threshold,queueing,ds2,psps --speed-up 20
  penstock run ./mine.py --workload "cosine * 0.001" --minutes 60
  penstock run images --dry-run                             decide, and change nothing
  penstock run images --master 'local-cluster[4,4,1024]' --executors 1:4 --speed-up 20
                                                            executors follow the replicas
  penstock run --resume runs/images-pulsar-queueing-...     go on where it was stopped
  penstock run ./mine.py --policy ds2 --out runs/mine       production mode, see below

A pipeline without @produces runs in production mode: its rows come from outside, it takes no
--workload and runs until it is stopped, unless --minutes says for how long. penstock status RUN
tells how it is, penstock stop RUN stops it, and the same command with --out goes on with it.

If nobody says: the workload pulsar, as much of it as takes two minutes; a decision every 15 s
and measures of the last 60 s; after a change nothing more for 15 s and nothing less for 60 s;
with an objective, nothing less while working off a queue takes longer than half of it, and
queueing keeps a mean of half of it, too; static-peak gets the peak. --speed-up divides times of
the workload, the interval (1 s remains at least), windows (5 s) and cool-downs; never service
times, rates or objectives. The run is kept in a directory, which penstock explain and penstock
replay read, and which the same command, or --resume, goes on with.

On a cluster executors are bought when replicas need them, and returned when fewer have been
enough for 15 s (5 s at least when sped up); there are never more replicas than they have room for.

An operator that fails by no fault of its function is restarted, with growing delays, for
--retry-for minutes: for ever, or 5 minutes if the pipeline produces its own rows. A function
that fails twice on the same rows ends the run, unless it has on_error="dead-letter".
Ctrl-C stops at the end of the batch, a second one at once; nothing is lost either way.
exit codes, also for supervisors:
  0          done: the workload, or the minutes, are over
  1          an operator or Spark failed: start it again with the same command
  2          you can mend it: starting it again will not help
  130, 143   stopped by Ctrl-C, or by TERM and penstock stop
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="run a pipeline on Spark, scaled while it runs",
        description="Run a pipeline on Spark under a load; a policy scales its operators.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    about = "images, tweets, ..., q1 (Nexmark), or a file ./mine.py"
    add("pipeline", nargs="?", metavar="PIPELINE", help=about)
    add_options(parser)
    about = "number of the pipeline, such as service_s=0.2"
    add("--set", action="append", default=[], metavar="K=V", help=about)
    add("--json", action="store_true", help="print the figures as JSON")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--out", metavar="DIR", help="keep the run here (runs/NAME-TIME)")
    place.add_argument("--resume", metavar="DIR", help="go on with the run in this directory")
    about = "go on without this operator, which the pipeline no longer has"
    add("--allow-removal", action="append", default=[], metavar="NAME", help=about)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of a run, besides what runs and where it is kept."""
    add = parser.add_argument
    add("--workload", metavar="NAME", help="see penstock workload")
    add(
        "--minutes",
        type=read_minutes,
        metavar="N",
        help="length of the workload, or of the run (what takes 2 minutes)",
    )
    add(
        "--speed-up",
        type=float,
        default=1.0,
        metavar="X",
        help="the same in less time (%(default)g)",
    )
    add(
        "--rate-scale",
        type=float,
        default=1.0,
        metavar="Y",
        help="every rate times Y (%(default)g)",
    )
    add("--seed", type=int, default=SEED, metavar="S", help="seed of all draws (%(default)s)")
    policies = parser.add_mutually_exclusive_group()
    policies.add_argument("--policy", metavar="NAME", help="see penstock policies (queueing)")
    policies.add_argument("--compare", metavar="A,B,..", help="these policies, one by one")
    _add_how(parser)
    add("--plain", action="store_true", help="one line a decision instead of a live view")


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for option, about in (
        ("--param", "parameter of the policy"),
        ("--guard", "guard, see policies --guards"),
        ("--workload-param", "parameter of the workload"),
    ):
        add(option, action="append", default=[], metavar="K=V", help=about)
    add("--initial", metavar="N", help="replicas at the start: 2, or resize:1,recognise:3")
    add("--objective", type=float, metavar="S", help="latency to stay below (the pipeline's own)")
    add("--interval", type=float, metavar="S", help="time between decisions (15)")
    add("--batch", type=float, default=1.0, metavar="S", help="length of a batch (%(default)s)")
    about = "restart operators that fail for so long (for ever; 5 with produces)"
    add("--retry-for", type=float, metavar="MINUTES", help=about)
    add("--dry-run", action="store_true", help="decide, but change nothing")
    about = "keep at most so many MB of the journal (80)"
    add("--journal-mb", type=float, metavar="N", help=about)
    add("--master", metavar="M", help="local-cluster[WORKERS,CORES,MB], or local[N] (one process)")
    add("--executors", metavar="A:B", help="least and most executors of a cluster (1:WORKERS)")


def run(args: argparse.Namespace) -> int:
    """Run, keep the run, show it."""
    # loaded where it is needed: other commands shall not wait for Spark
    from penstock.cli.running import (  # noqa: PLC0415
        compare,
        default_directory,
        prepare_policies,
        run_one,
    )
    from penstock.lab.preparing import prepare  # noqa: PLC0415
    from penstock.lab.spark_spec import read_spec  # noqa: PLC0415

    if args.resume is not None:
        _refuse_others(args)
        directory = Path(args.resume)
        prepared = prepare(read_spec(directory))
        allowed = args.allow_removal
        result, code = run_one(prepared, directory, plain=args.plain, allow_removal=allowed)
        return _shown({"": result}, directory, args, code)
    if args.pipeline is None:
        raise InputError("PIPELINE", "missing", "such as images, or --resume DIR")
    spec = spec_of(args)
    if args.compare is None:
        prepared = prepare(spec)
        directory = Path(args.out) if args.out else default_directory(prepared, spec.policy)
        allowed = args.allow_removal
        result, code = run_one(prepared, directory, plain=args.plain, allow_removal=allowed)
        return _shown({"": result}, directory, args, code)
    if args.param:
        hint = "compare policies as they are, or run them one by one with --policy"
        raise InputError("--param", "parameters belong to one policy, but --compare has many", hint)
    names = [name.strip() for name in args.compare.split(",") if name.strip()]
    runs = prepare_policies(spec, names)
    first = next(iter(runs.values()), None)
    if first is None:
        raise InputError("--compare", "names no policy", "such as --compare ds2,psps")
    directory = Path(args.out) if args.out else default_directory(first, "compare")
    results, code = compare(runs, directory, plain=args.plain)
    return _shown(results, directory, args, code)


def spec_of(args: argparse.Namespace) -> "SparkSpec":
    """What the options ask for."""
    from penstock.lab.spark_spec import SparkSpec  # noqa: PLC0415

    return SparkSpec(
        pipeline=args.pipeline,
        workload=args.workload,
        policy=args.policy or "queueing",
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
    """A run goes on as it was asked for."""
    given = args.pipeline or args.policy or args.compare or args.param or args.guard or args.set
    if given or args.master or args.executors:
        hint = "give --resume DIR alone, or begin another run"
        raise InputError("--resume", "goes on with what its run.toml says", hint)


def _shown(
    results: dict[str, dict[str, Any]], directory: Path, args: argparse.Namespace, code: int
) -> int:
    from penstock.cli.run_report import comparison, report  # noqa: PLC0415

    print(f"kept in {directory}", file=sys.stderr)
    single = results.get("")
    if args.json:
        print(json.dumps(results if single is None else single, indent=2))
    elif single is not None:
        print("\n".join(report(single, directory)))
    else:
        print("\n".join(comparison(results, directory)))
    return code
