"""`penstock run`: runs a pipeline on Spark and scales it by a policy."""

import argparse

from penstock.cli.run_options import add_run_options, run_pipeline
from penstock.cli.subcommands import add_command

EXAMPLES = """\
examples:
  penstock run images --workload pulsar --speed-up 20       a demo of two minutes
  penstock run images --policy ds2 --guard overprovision=1.2 --set service_s=0.2
  penstock run images --compare threshold,queueing,ds2,psps --speed-up 20
  penstock run ./mine.py --workload "cosine * 0.001" --minutes 60
  penstock run images --dry-run                             decide, but change nothing
  penstock run images --metrics-port 9464                   /metrics for Prometheus
  penstock run words --controller none --speed-up 20        each replica decides alone
  penstock run images --master 'local-cluster[4,4,1024]' --executors 1:4 --speed-up 20
  penstock run ./mine.py --master spark://host:7077 --executors 1:8 --conf spark.executor.cores=2
  penstock run ./mine.py --topics kafka://host:9092/mine    rows between operators in Kafka
  penstock run --resume runs/images-pulsar-queueing-...     resume a stopped run
  penstock run ./mine.py --policy ds2 --out runs/mine       production mode, see below
  penstock run ./mine.py --out runs/mine --available-now    process what is there, then end
  penstock run ./mine.py --out runs/mine --standby          take over when the first one dies

Production mode: a pipeline without @produces reads rows from outside. It takes no --workload and
runs until it is stopped, or for --minutes. penstock status RUN shows its health, penstock stop RUN
stops it, and the same command with the same --out resumes it.

defaults:
  workload      pulsar, the first part, so that the run takes two minutes
  interval      15 s between decisions; metrics cover the last 60 s
  cool-downs    after a change, no scale-up for 15 s and no scale-down for 60 s
  objective     the pipeline's; no scale-down while draining a queue would take
                longer than half of it. Some policies derive defaults from it,
                or from the peak rate
  directory     runs/PIPELINE-WORKLOAD-POLICY-TIME, for penstock explain and replay

--speed-up divides the times of the workload, the interval (at least 1 s), metric windows (at least
5 s) and cool-downs. It never changes service times, rates or objectives.

--controller none: no loop decides. At the end of a batch, once per --interval, each replica decides
from its own load and the number of its siblings whether to duplicate itself or to stop (parameters:
those of the policy decentralized). Votes take effect at the operator's next batch, within its
bounds; policies, guards and --dry-run are refused. Operators with Spark's own state keep their
replicas. The journal records what the replicas decided.

--chain on: neighbouring batch operators, also behind a sliced one, run as one query without a topic
between them, where no row must be dealt anew and nobody else needs the topic. Policies see a chain
as one operator, named after its first member. chain=False on an operator or a pipeline forbids it.
A run may be continued with another --chain; rows left between members are processed first.

On a cluster, executors are requested before a scale-up and released when fewer have been
sufficient for 15 s (at least 5 s with --speed-up). Replicas never exceed the executors' slots.

Failures: an operator that fails for a reason outside its function is restarted with growing delays
for --retry-for minutes. A function that fails twice on the same rows ends the run, unless it has
on_error="dead-letter". Ctrl-C stops after the running batches; a second Ctrl-C stops at once.
No data is lost in either case.

--standby: start the same command twice, with the same --out. One runs, the other one waits and
takes over when the first and its JVM are gone. If the first ends by itself or is stopped, the other
one ends, too, with its result.

exit codes:
  0          finished: the workload or --minutes are over
  1          an operator or Spark failed, or records were lost; start it again
  2          wrong options, files or pipeline; fix them first
  130, 143   stopped by Ctrl-C; by SIGTERM or penstock stop
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "run",
        summary="run a pipeline on Spark and scale it while it runs",
        description="Run a pipeline on Spark; a policy scales its operators.",
        examples=EXAMPLES,
        run=run_pipeline,
    )
    add = parser.add_argument
    about = "images, tweets, ..., q1 (Nexmark), or a file ./mine.py"
    add("pipeline", nargs="?", metavar="PIPELINE", help=about)
    add_run_options(parser)
    about = "argument of the pipeline, such as service_s=0.2"
    add("--set", action="append", default=[], metavar="K=V", help=about)
    add("--json", action="store_true", help="print the result as JSON")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--out", metavar="DIR", help="run directory (default: runs/NAME-TIME)")
    place.add_argument("--resume", metavar="DIR", help="resume the run in this directory")
    about = "resume without this operator, which the pipeline no longer has"
    add("--allow-removal", action="append", default=[], metavar="NAME", help=about)
    about = "production mode: process what is there now, then end; for cron and orchestrators"
    add("--available-now", action="store_true", help=about)
    about = "wait while another process runs in the directory; take over when it dies"
    add("--standby", action="store_true", help=about)
