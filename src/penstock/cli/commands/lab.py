"""`penstock lab`: runs grids of runs and compares their policies."""

import argparse
import json
import shlex
import sys
from functools import partial
from pathlib import Path

from penstock.cli.cluster_options import add_cluster_options, read_cluster_options
from penstock.cli.options import check_at_least_1
from penstock.cli.subcommands import add_group, add_verb
from penstock.files.text import write_text
from penstock.lab.comparison.grid_comparison import compare_grids
from penstock.lab.comparison.objective_score import Roles, score_grids
from penstock.lab.grid.grid import Grid
from penstock.lab.grid.grid_run import run_grid
from penstock.lab.grid.runner import RUNS
from penstock.reports import objective_text
from penstock.reports.comparison_json import as_json, as_spreadsheet
from penstock.reports.comparison_text import as_document, as_page, as_terminal, gap_notes
from penstock.reports.grid_picture import draw_grids
from penstock.reports.grid_text import grid_json, grid_text
from penstock.reports.progress import ProgressBar

EXAMPLES = """\
examples:
  penstock lab run experiments/policies-on-cosine.toml       run a grid, or resume it
  penstock lab compare runs/policies-on-cosine               which policy is better, how certainly?
  penstock lab compare runs/policies-on-cosine --hindsight --html comparison.html
  penstock lab run experiments/spark/thesis.toml             runs on Spark, one at a time
  penstock lab run experiments/thesis.toml --master spark://host:7077 --executors 8
      simulated runs as tasks of one Spark job; results are stored as they are ready
  penstock lab compare runs/spark-cosine runs/spark-random --markdown results.md
  penstock lab compare runs/spark-controllers --changes      and how often replicas turn back
  penstock lab objective runs/slo-tuning --policy slo --tuned ds2 --peak static-peak
      is the objective kept, at which cost, and which policy is better?
"""
RUN_EXAMPLES = """\
A grid is a TOML file. A list adds one run per value:

  name = "targets"
  [base]                       # applies to all runs
  engine = "flink"
  minutes = 140
  [grid]
  query = ["q1", "q11"]
  policy = ["ds2", { policy = "hpa-cpu", params = { target = [0.5, 0.7] } }]
  seeds = 20                   # or a list of seeds

fields: query workload policy engine minutes params guards workload_params profile initial
mode objective_s interval_s. A table may have a label. Interrupt the command at any time; the same
command resumes it.

With on = "spark" at the top, the runs use Spark, one after the other, each in DIR/runs/. Fields:
query (the pipeline: q1, images, ./mine.py) build_args (arguments of the pipeline) workload policy
minutes speed_up rate_scale params guards workload_params initial objective_s interval_s batch_s
controller dry_run master executors. Ctrl-C stops the current run; the same command starts that run
again. note = "..." is printed above the results.

exit codes:
  0  done
  1  a run on Spark failed; the others are done
  2  wrong options or files; fix them first
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "lab",
        summary="run grids of runs and compare them",
        description="Run grids of runs, simulated or on Spark, and compare the policies.",
        examples=EXAMPLES,
    )
    grid = add_verb(verbs, "run", "run a grid; finished runs are not repeated", RUN_EXAMPLES, run)
    grid.add_argument("spec", metavar="SPEC.toml", type=Path, help="the grid")
    about = "results directory (default: runs/NAME)"
    grid.add_argument("--out", metavar="DIR", type=Path, help=about)
    _add_jobs(grid)
    add_cluster_options(grid)
    about = "compare policies under the same loads, over paired seeds"
    compare = add_verb(verbs, "compare", about, EXAMPLES, run_compare)
    about = "results directory of a grid"
    compare.add_argument("directories", metavar="DIR", type=Path, nargs="+", help=about)
    for form in ("markdown", "csv", "html"):
        compare.add_argument(f"--{form}", metavar="FILE", type=Path, help=f"write {form} as well")
    about = "add the ratio to the hindsight optimum"
    compare.add_argument("--hindsight", action="store_true", help=about)
    about = "add how often replicas changed and turned back, from the journals of runs on Spark"
    compare.add_argument("--changes", action="store_true", help=about)
    about = "draw replicas and latency over time, of runs on Spark with the first seed"
    compare.add_argument("--picture", metavar="FILE", type=Path, help=about)
    _add_jobs(compare)
    about = "score one policy on its latency objective, against all others of the grids"
    score = add_verb(verbs, "objective", about, EXAMPLES, run_objective)
    about = "results directory of a simulated grid"
    score.add_argument("directories", metavar="DIR", type=Path, nargs="+", help=about)
    about = "the policy to score"
    score.add_argument("--policy", metavar="NAME", required=True, help=about)
    about = "the policy whose variants are the tuned rival, and whose rescales are compared"
    score.add_argument("--tuned", metavar="NAME", help=about)
    about = "the policy that knows the peak of the load: missing no more than it is allowed"
    score.add_argument("--peak", metavar="NAME", help=about)
    score.add_argument("--markdown", metavar="FILE", type=Path, help="write markdown as well")
    _add_jobs(score)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    about = "parallel processes (default: one per core)"
    parser.add_argument("--jobs", metavar="N", type=int, help=about)


def run(args: argparse.Namespace) -> int:
    """Check a grid, run what is missing, print where the results are."""
    check_at_least_1("--jobs", args.jobs)
    cluster = read_cluster_options(args)
    with ProgressBar(args.spec.stem) as bar:
        announce = partial(_announce, bar)
        result = run_grid(args.spec, args.out, args.jobs, bar.show, announce, cluster)
    for error in result.failed:
        print(f"error: {error}", file=sys.stderr)
    print(json.dumps(grid_json(result), indent=2) if args.json else "\n".join(grid_text(result)))
    return 1 if result.failed else 0


def _announce(bar: ProgressBar, grid: Grid, out: Path) -> None:
    bar.title = grid.name
    if grid.backend.is_sequential:
        print(f"{grid.name}: each run writes its output to {out / RUNS}", file=sys.stderr)


def run_compare(args: argparse.Namespace) -> int:
    """Compare the grids, write the files, print the comparison."""
    check_at_least_1("--jobs", args.jobs)
    with ProgressBar("hindsight") as bar:
        grids = compare_grids(
            args.directories,
            hindsight=args.hindsight,
            changes=args.changes,
            jobs=args.jobs,
            on_progress=bar.show,
        )
    for directory, grid in zip(args.directories, grids, strict=True):
        for note in gap_notes(grid, directory):
            print(note, file=sys.stderr)
    title = grids[0].name if len(grids) == 1 else ""
    if (path := args.markdown) is not None:
        page = as_document(title or path.stem, grids, _command(args, "--markdown"))
        _write(path, page, "--markdown")
    if (path := args.html) is not None:
        _write(path, as_page(title or path.stem, grids, _command(args, "--html")), "--html")
    if args.picture is not None:
        draw_grids(args.directories, args.picture)
        print(f"wrote {args.picture}", file=sys.stderr)
    if args.csv is not None:
        _write(args.csv, as_spreadsheet(grids), "--csv")
    if args.json:
        data = [as_json(grid) for grid in grids]
        print(json.dumps(data[0] if len(data) == 1 else {"grids": data}, indent=2))
    else:
        print(as_terminal(grids))
    return 0


def run_objective(args: argparse.Namespace) -> int:
    """Score a policy, write the file, print the tables."""
    check_at_least_1("--jobs", args.jobs)
    roles = Roles(policy=args.policy, tuned=args.tuned, peak=args.peak)
    with ProgressBar("hindsight") as bar:
        score = score_grids(args.directories, roles, args.jobs, bar.show)
    if (path := args.markdown) is not None:
        words = ["penstock", "lab", "objective", *map(str, args.directories)]
        named = {name: vars(args)[name] for name in ("policy", "tuned", "peak")}
        words += [word for name, value in named.items() if value for word in (f"--{name}", value)]
        words += ["--markdown", str(path)]
        _write(path, objective_text.as_document(score, shlex.join(words)), "--markdown")
    if args.json:
        print(json.dumps(objective_text.as_json(score), indent=2))
    else:
        print(objective_text.as_terminal(score))
    return 0


def _command(args: argparse.Namespace, option: str) -> str:
    """Return the command that makes a file again."""
    more = [f"--{name}" for name in ("hindsight", "changes") if vars(args)[name]]
    directories, path = map(str, args.directories), str(vars(args)[option.removeprefix("--")])
    return shlex.join(["penstock", "lab", "compare", *directories, *more, option, path])


def _write(path: Path, text: str, option: str) -> None:
    write_text(path, text, option)
    print(f"wrote {path}", file=sys.stderr)
