"""HPA-CPU: keep the CPU of each operator's replicas at a target.

The rule of Kubernetes' horizontal pod autoscaler, as the evaluation thesis used it per
operator (4.4 and 6.7.3). No sample in the window leaves an operator alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.decision import Decision
from penstock.core.hpa_rule import largest_of_window
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle
from penstock.core.snapshot import OperatorSnapshot, Snapshot

FORMULA = (
    "proposal = ceil({k} x cpu {cpu} / target {target}) = {proposal}; "
    "largest of the last {window} s = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaCpuParams(Params):
    """Parameters of HPA-CPU."""

    target: float = param(0.7, "CPU share to aim for", low=0, above=True, high=1)
    window_s: float = param(300.0, "the largest proposal of this long wins", unit="s", low=0)
    tolerance: float = param(0.0, "no change while cpu / target is this close to 1", low=0)


def hpa_cpu(history: History, _applied: Applied, params: HpaCpuParams) -> Decision:
    """Scale each operator by cpu / target.

    >>> op = OperatorSnapshot(name="map", parallelism=5, cpu=0.9)
    >>> hpa_cpu([Snapshot(at=0, operators={"map": op})], [], HpaCpuParams()).changes
    {'map': 7}
    """

    def factor(op: OperatorSnapshot, _at: Snapshot) -> tuple[float, Mapping[str, float]] | None:
        if op.cpu is None:
            return None
        return op.cpu / params.target, {"cpu": op.cpu, "target": params.target}

    return largest_of_window(
        "hpa-cpu", history, factor, FORMULA, window_s=params.window_s, tol=params.tolerance
    )


POLICY = Policy(
    name="hpa-cpu",
    summary="keep CPU at a target, as Kubernetes' pod autoscaler does",
    paper="Kubernetes HPA, as in the evaluation thesis 4.4",
    decide=hpa_cpu,
    params=HpaCpuParams,
    measures=("cpu",),
    lookback_s=lambda params: float(params.window_s),
    style=PolicyStyle("#009E73", "solid", "^"),
)
