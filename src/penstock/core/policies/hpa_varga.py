"""HPA-Varga: utilisation and the relative change of lag, whichever asks for more.

Varga, Balassi, Kiss, "Towards autoscaling of Apache Flink jobs", 2021, as the evaluation
thesis used it (4.5 and 6.7.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.bottlenecks import find_bottlenecks
from penstock.core.decision import Decision
from penstock.core.hpa_rule import largest_of_window
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle
from penstock.core.snapshot import OperatorSnapshot, Snapshot

FORMULA = (
    "factor = max(utilisation {utilisation} / {target}, lag change {lag} / {lag_target}) = "
    "{factor}; proposal = ceil({k} x {factor}) = {proposal}; "
    "largest of the last {window} s = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaVargaParams(Params):
    """Parameters of HPA-Varga."""

    target: float = param(0.7, "utilisation (1 - idle) to aim for", low=0, above=True, high=1)
    lag_target: float = param(1.0, "relative lag change to aim for", low=0, above=True)
    window_s: float = param(300.0, "the largest proposal of this long wins", unit="s", low=0)
    tolerance: float = param(0.0, "no change while the factor is this close to 1", low=0)
    backpressure: float = param(
        0.1, "share of time above which an operator is back-pressured", low=0, high=1
    )
    lag_rate: float = param(1000.0, "queue growth of a slow source", unit="records/s", low=0)


def hpa_varga(history: History, _applied: Applied, params: HpaVargaParams) -> Decision:
    """Scale each operator by the larger of utilisation and lag change, each over its target.

    >>> op = OperatorSnapshot(name="map", parallelism=5, idle=0.1)
    >>> hpa_varga([Snapshot(at=0, operators={"map": op})], [], HpaVargaParams()).changes
    {'map': 7}
    """
    changes = {id(past): _lag_changes(past, params) for past in history}

    def factor(op: OperatorSnapshot, past: Snapshot) -> tuple[float, Mapping[str, float]] | None:
        if op.idle is None:
            return None
        lag = changes[id(past)].get(op.name, -1.0)
        utilisation = 1 - op.idle
        numbers = {"utilisation": utilisation, "target": params.target}
        numbers |= {"lag": lag, "lag_target": params.lag_target}
        return max(utilisation / params.target, lag / params.lag_target), numbers

    return largest_of_window(
        "hpa-varga", history, factor, FORMULA, window_s=params.window_s, tol=params.tolerance
    )


def _lag_changes(snapshot: Snapshot, params: HpaVargaParams) -> dict[str, float]:
    """For each bottleneck 1 + growth of the queues over what is taken from them.

    The queues are those of the sources that reach it.
    """
    slow = find_bottlenecks(snapshot, backpressure=params.backpressure, lag_rate=params.lag_rate)
    if not slow.confirmed:
        return {}
    reached_by, ops = snapshot.topology.sources_of_each(), snapshot.operators
    changes = {}
    for name in slow.confirmed:
        sources = [ops[source] for source in reached_by[name]]
        rate = sum(op.input_rate or 0.0 for op in sources)
        if rate and all(op.queue_growth is not None for op in sources):
            changes[name] = 1 + sum(op.queue_growth or 0.0 for op in sources) / rate
    return changes


POLICY = Policy(
    name="hpa-varga",
    summary="pod autoscaler on utilisation and lag change instead of CPU",
    paper="Towards autoscaling of Apache Flink jobs, 2021, as in the evaluation thesis 4.5",
    decide=hpa_varga,
    params=HpaVargaParams,
    measures=("idle", "backpressured", "queue_growth", "input_rate"),
    lookback_s=lambda params: float(params.window_s),
    style=PolicyStyle("#CC79A7", "solid", "D"),
)
