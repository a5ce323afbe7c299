"""The verbs `bench` and `migrate-bench` of `penstock pubsub`."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from penstock.cli.options import add_seed
from penstock.cli.subcommands import add_verb
from penstock.reports.progress import ProgressBar

if TYPE_CHECKING:
    from penstock.pubsub.bench.load import BenchSpec
    from penstock.pubsub.bench.migration_bench import MigrationResult, MigrationSpec
    from penstock.pubsub.bench.service_result import EndToEndResult, PhaseLength

BENCH_EXAMPLES = """\
examples:
  penstock pubsub bench --encrypted                       100,000 subscriptions, 4 attributes
  penstock pubsub bench --attributes 8 --encrypted --json
  penstock pubsub bench --match-rate 0.0001               plain subscriptions, few matches
  penstock pubsub bench --encrypted --kernels-only        without Spark
  penstock pubsub bench --encrypted --backend numpy       without numba

Kernel and operator M are measured in this process, then the whole service on Spark: at
full load, and at half of that the delay from publish to notification. It takes about two
minutes on an idle machine. Rates by the clock count only there; rates per second of CPU
time count on a busy one, too.
"""
MIGRATE_EXAMPLES = """\
examples:
  penstock pubsub migrate-bench                                   12,500 and 50,000 in a slice
  penstock pubsub migrate-bench --per-slice 1000 --moves 3        a short one
  penstock pubsub migrate-bench --markdown docs/pubsub.md         replace the table of a page

Slices of AP, M and EP move between two replicas of their operator while publications flow.
The table shows how much longer a gap between commits is because of a move, and the delay of
notifications, beside table I and figure 7 of E-StreamHub.
"""


def add_bench_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs with their options."""
    about = "measure how many pairs of publication and subscription are matched in a second"
    _add_bench_options(add_verb(verbs, "bench", about, BENCH_EXAMPLES, run_bench_command))
    about = "measure what migrations of slices do to the delay of notifications, on Spark"
    _add_migrate_options(add_verb(verbs, "migrate-bench", about, MIGRATE_EXAMPLES, run_migrate))


def _add_bench_options(parser: argparse.ArgumentParser) -> None:
    def add(option: str, kind: type, default: float, metavar: str, about: str) -> None:
        text = f"{about} (default: %(default)s)"
        parser.add_argument(option, type=kind, default=default, metavar=metavar, help=text)

    add("--subscriptions", int, 100_000, "N", "number of subscriptions")
    add("--attributes", int, 4, "D", "attributes, each with a range in every subscription")
    add("--match-rate", float, 0.01, "R", "share of pairs that match")
    parser.add_argument("--encrypted", action="store_true", help="scheme aspe instead of plain")
    add("--publications", int, 1000, "N", "publications in a batch")
    add("--slices", int, 16, "N", "slices of subscriptions")
    add("--threads", int, 2, "N", "threads")
    add("--rounds", int, 10, "N", "rounds; the best one counts")
    add("--seconds", float, 30.0, "S", "length of each measurement on Spark")
    add("--batch", float, 1.0, "S", "planned time of a batch on Spark")
    about = "start batches at once while their overhead takes less than this share of the machine"
    parser.add_argument("--overhead-share", type=float, metavar="X", help=about)
    about = "measure kernel and operator only, without Spark"
    parser.add_argument("--kernels-only", action="store_true", help=about)
    about = "numba or numpy (default: numba if it is installed)"
    parser.add_argument("--backend", choices=("numba", "numpy"), help=about)
    add_seed(parser)


def _add_migrate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "subscriptions in a slice of M, one or several numbers (default: 12500 50000)"
    add("--per-slice", type=int, nargs="+", default=[12_500, 50_000], metavar="N", help=about)
    about = "migrations of each operator (default: %(default)s)"
    add("--moves", type=int, default=8, metavar="N", help=about)
    about = "publications/s (default: %(default)s, as in the paper)"
    add("--rate", type=float, default=100.0, metavar="R", help=about)
    about = "seconds between migrations (default: %(default)s)"
    add("--pause", type=float, default=5.0, metavar="S", help=about)
    add("--plain", action="store_true", help="plain subscriptions instead of encrypted ones")
    add("--markdown", type=Path, metavar="FILE", help="write the table into a page")
    add_seed(parser)


# Each verb imports what it needs: Arrow and Spark take long to load.


def run_bench_command(args: argparse.Namespace) -> int:
    """Measure and print; exit code 1 if a pair was wrong."""
    from penstock.pubsub.bench.kernel_bench import run_bench  # noqa: PLC0415
    from penstock.pubsub.bench.load import BenchSpec  # noqa: PLC0415
    from penstock.pubsub.bench.service_result import PhaseLength  # noqa: PLC0415
    from penstock.pubsub.kernels.backend import Backend, default_backend  # noqa: PLC0415
    from penstock.reports.pubsub_text import bench_json, bench_text  # noqa: PLC0415

    spec = BenchSpec(
        subscriptions=args.subscriptions,
        attributes=args.attributes,
        match_rate=args.match_rate,
        is_encrypted=args.encrypted,
        publications=args.publications,
        slices=args.slices,
        threads=args.threads,
        rounds=args.rounds,
        seed=args.seed,
        backend=Backend(args.backend) if args.backend else default_backend(),
    )
    length = PhaseLength(
        full_s=args.seconds,
        half_s=args.seconds,
        batch_s=args.batch,
        overhead_share=args.overhead_share,
    )
    with ProgressBar("bench", resumes=False) as bar:
        result = run_bench(spec, bar.show)
    service = None if args.kernels_only else _measure_service(spec, length)
    if args.json:
        print(json.dumps(bench_json(spec, result, service), indent=2))
    else:
        print(bench_text(spec, result, service))
    return 1 if result.wrong_pairs or (service and service.wrong_publications) else 0


def _measure_service(spec: "BenchSpec", length: "PhaseLength") -> "EndToEndResult":
    """Measure the service on Spark in a directory that is removed afterwards."""
    from penstock.pubsub.bench.service_bench import run_end_to_end  # noqa: PLC0415

    with TemporaryDirectory(prefix="penstock-bench-") as directory:
        return run_end_to_end(spec, Path(directory) / "run", length, _say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_migrate(args: argparse.Namespace) -> int:
    """Measure and print, and write the table into a page."""
    from penstock.pubsub.bench.migration_bench import run_migration_bench  # noqa: PLC0415
    from penstock.reports.migration_text import (  # noqa: PLC0415
        migration_json,
        migration_text,
        write_migration_page,
    )

    specs = [_make_migration_spec(args, per_slice) for per_slice in args.per_slice]
    results: list[MigrationResult] = []
    for spec in specs:
        # AP and EP do not depend on the number of subscriptions
        operators = ("access", "match", "exit") if spec is specs[0] else ("match",)
        with TemporaryDirectory(prefix="penstock-bench-") as directory:
            results += run_migration_bench(spec, Path(directory) / "run", operators, _say)
    if args.json:
        print(json.dumps(migration_json(results), indent=2))
    else:
        print(migration_text(specs[0], results))
    if args.markdown is not None:
        write_migration_page(args.markdown, specs[0], results)
    return 0


def _make_migration_spec(args: argparse.Namespace, per_slice: int) -> "MigrationSpec":
    from penstock.pubsub.bench.load import BenchSpec  # noqa: PLC0415
    from penstock.pubsub.bench.migration_bench import MigrationSpec  # noqa: PLC0415
    from penstock.pubsub.kernels.backend import default_backend  # noqa: PLC0415

    load = BenchSpec(
        subscriptions=1,
        attributes=4,
        match_rate=0.01,
        is_encrypted=not args.plain,
        publications=1,
        slices=1,
        threads=1,
        rounds=1,
        seed=args.seed,
        backend=default_backend(),
    )
    return MigrationSpec(
        per_slice=per_slice,
        moves=args.moves,
        publications_per_s=args.rate,
        pause_s=args.pause,
        load=load,
    )
