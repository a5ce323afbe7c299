"""Limits of the replicas of a run on Spark: executors, task slots, and the numbers at the start."""

from collections.abc import Mapping

from penstock.core.executors import ExecutorRules
from penstock.engines.spark.cluster.masters import Master, parse_executors
from penstock.errors import InputError, nearest
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.spec import SparkSpec

#: Time for which fewer executors must have been enough before some are returned; sped up, too,
#: but one takes a few seconds to begin.
RETURN_S, MIN_RETURN_S = 15.0, 5.0


def choose_executors(
    spec: SparkSpec, master: Master | None, pipeline: Pipeline
) -> ExecutorRules | None:
    """Return what executors keep to; None without a cluster."""
    bounds = parse_executors(spec.executors, master)
    if master is None or bounds is None:
        return None
    delay_s = max(RETURN_S / spec.speed_up, MIN_RETURN_S)
    rules = ExecutorRules(low=bounds[0], high=bounds[1], cores=master.cores, delay_s=delay_s)
    operators = pipeline.operators.values()
    if rules.room < (least := sum(op.options.min_replicas for op in operators)):
        problem = f"there is room for {rules.room} replicas, {pipeline.name} needs {least}"
        raise InputError("--executors", problem, "more executors, or more cores for each")
    return rules


def count_room(
    pipeline: Pipeline, executors: ExecutorRules | None, slots: int | None
) -> int | None:
    """Return how many replicas run at once at most; None where there is room for all."""
    if slots is None:
        return executors.room if executors is not None else None
    least = sum(operator.options.min_replicas for operator in pipeline.operators.values())
    if slots < least:
        problem = f"runs {slots} tasks at once, {pipeline.name} needs {least}"
        raise InputError("spark", problem, f"start the session with master local[{least}] or more")
    return slots


def choose_initial(wanted: Mapping[str, int] | int | None, pipeline: Pipeline) -> Mapping[str, int]:
    """Return the replicas of each operator at the start that differ from what it declares."""
    scaled = {name: op.options for name, op in pipeline.operators.items() if op.scales}
    if wanted is None:
        return {}
    given = wanted if isinstance(wanted, Mapping) else dict.fromkeys(scaled, wanted)
    for name, replicas in given.items():
        if name not in scaled:
            raise InputError("--initial", f"there is no operator {name!r}", nearest(name, scaled))
        least, most = scaled[name].min_replicas, scaled[name].max_replicas
        if not least <= replicas <= most:
            problem = f"{name} has from {least} to {most} replicas, got {replicas}"
            raise InputError("--initial", problem)
    return given
