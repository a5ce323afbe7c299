"""`penstock run`: a pipeline on Spark under a load, scaled by a policy while it runs."""

import argparse

from penstock.cli.run_options import add_run_options, run_pipeline

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
with an objective, nothing less while working off a queue takes longer than half of it. Some
policies derive defaults from the objective or the peak rate. --speed-up divides times of
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
    add_run_options(parser)
    about = "number of the pipeline, such as service_s=0.2"
    add("--set", action="append", default=[], metavar="K=V", help=about)
    add("--json", action="store_true", help="print the figures as JSON")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--out", metavar="DIR", help="keep the run here (runs/NAME-TIME)")
    place.add_argument("--resume", metavar="DIR", help="go on with the run in this directory")
    about = "go on without this operator, which the pipeline no longer has"
    add("--allow-removal", action="append", default=[], metavar="NAME", help=about)
    parser.set_defaults(run=run_pipeline)
