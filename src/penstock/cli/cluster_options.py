"""Options of a Spark cluster that the runs of a grid are spread over."""

import argparse

from penstock.cli.options import add_pairs, parse_pairs
from penstock.errors import InputError
from penstock.lab.grid.grid_run import Cluster, read_cluster


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add `--master`, `--executors` and `--conf`."""
    about = "spread simulated runs over a Spark cluster: spark://HOST:PORT, local-cluster[2,1,1024]"
    parser.add_argument("--master", metavar="M", help=about)
    about = "executors on the cluster (default: all workers of a local one)"
    parser.add_argument("--executors", metavar="N", type=int, help=about)
    add_pairs(parser, "--conf", "setting of Spark on a cluster, such as spark.executor.cores=2")


def read_cluster_options(args: argparse.Namespace) -> Cluster | None:
    """Return the cluster; None without `--master`."""
    conf = parse_pairs(args.conf, "--conf")
    if args.master is None:
        if args.executors is not None or conf:
            option = "--conf" if conf else "--executors"
            raise InputError(option, "needs a cluster", "add --master spark://HOST:PORT")
        return None
    if args.jobs is not None:
        raise InputError("--jobs", "is for this machine", "use --executors with --master")
    return read_cluster(args.master, args.executors, conf)
