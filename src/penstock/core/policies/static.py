"""Static: a fixed parallelism per operator, the baseline of all comparisons."""

from dataclasses import dataclass

from penstock.core.decision import Decision, Target
from penstock.core.params import NOTHING, Params, PerOperator, check_names, look_up, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticParams(Params):
    """Parameters of the static policy."""

    parallelism: PerOperator = param(
        NOTHING, "replicas, as 4 or map:4,sink:2; what runs where none is given", low=1
    )


def static(history: History, _applied: Applied, params: StaticParams) -> Decision:
    """Return the same parallelism for every snapshot.

    >>> from penstock.core.snapshot import Snapshot
    >>> now = Snapshot(at=0, operators={"map": OperatorSnapshot(name="map", parallelism=1)})
    >>> static([now], [], StaticParams(parallelism={"*": 4})).changes
    {'map': 4}
    """
    snapshot = history[-1]
    check_names(params.parallelism, snapshot.operators, "parallelism")
    return each_operator("static", snapshot, lambda op: _target(op, params))


def _target(op: OperatorSnapshot, params: StaticParams) -> Target:
    wanted = int(look_up(params.parallelism, op.name) or op.parallelism)
    return Target(op.parallelism, wanted, Reason.FIXED, "always {wanted}", {"wanted": wanted})


POLICY = Policy(
    name="static",
    summary="a fixed parallelism per operator",
    paper="no paper: what most pipelines run today",
    decide=static,
    params=StaticParams,
    reacts=False,
    style=PolicyStyle("#222222", "solid", "P"),
)
