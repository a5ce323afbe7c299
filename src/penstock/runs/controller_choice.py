"""A run without a controller: what it refuses, and the rules by which its replicas decide."""

from collections.abc import Mapping

from penstock.control.registry import alone_policy
from penstock.core.instance_decision import DecentralizedParams
from penstock.core.params import Params, look_up
from penstock.engines.microbatch.replica_vote import VotingRules
from penstock.errors import InputError
from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.spec import SparkSpec


def check_controller(spec: SparkSpec, pipeline: Pipeline, room: int | None) -> None:
    """Refuse what only a control loop can do; `room` is how many replicas run at once at most."""
    if spec.is_controlled:
        return
    useless = {
        f"--policy {spec.policy}": spec.policy != alone_policy(),
        **{f"--guard {name}": True for name in spec.guards},
        "--dry-run": spec.dry_run,
    }
    given = [option for option, is_given in useless.items() if is_given]
    if given:
        problem = f"without a control loop there is nothing that obeys {', '.join(given)}"
        hint = (
            f"leave it out, or use the loop with --policy {alone_policy()}; replicas keep to"
            " min_replicas and max_replicas of their operator"
        )
        raise InputError("--controller none", problem, hint)
    most = _count_most(pipeline)
    if room is not None and room < most:
        problem = f"there is room for {room} replicas, and {pipeline.name} may have {most}"
        hint = (
            "nobody sees all replicas and could keep to a budget: lower max_replicas, or more room"
        )
        raise InputError("--controller none", problem, hint)


def make_voting_rules(
    spec: SparkSpec, pipeline: Pipeline, params: Params, interval_s: float, drain_s: float
) -> Mapping[str, VotingRules]:
    """Return the rules of each operator that has replicas."""
    assert isinstance(params, DecentralizedParams)
    return {
        name: VotingRules(
            min_replicas=operator.options.min_replicas,
            max_replicas=operator.options.max_replicas,
            interval_s=interval_s,
            drain_s=drain_s,
            batch_s=spec.batch_s,
            r=params.r,
            up=params.up,
            down=params.down,
            capacity=look_up(params.capacity, name),
            seed=f"{spec.seed}/{params.seed}",
            is_fixed=find_kind(operator.kind).pauses,
        )
        for name, operator in pipeline.operators.items()
        if operator.scales
    }


def _count_most(pipeline: Pipeline) -> int:
    options = ((op.scales, op.options) for op in pipeline.operators.values())
    return sum(o.max_replicas if scales else o.replicas for scales, o in options)
