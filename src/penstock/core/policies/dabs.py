"""DABS: a line through the last intervals predicts the next one's load.

Kombi et al., "DABS-Storm: A Data-Aware Approach for Elastic Stream Processing", 2019, as
the predictive paper compares with it (V-F). That its engine restarts and drops what is
queued belongs to the engine, not to the policy.
"""

from dataclasses import dataclass

from penstock.core.decision import Decision, Target, keep
from penstock.core.numbers import ceil
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot
from penstock.core.trend import line_at
from penstock.errors import InputError

LOAD = (
    "load = ({predicted} predicted + {pending} pending) / "
    "({k} replicas x {capacity} an interval) = {load}"
)
SIZE = LOAD + "; wanted = ceil({expected} / ({high} x {capacity})) = {wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DabsParams(Params):
    """Parameters of DABS."""

    interval_s: float = param(30.0, "length of an interval", unit="s", low=0, above=True)
    history: int = param(6, "intervals that the line is drawn through", unit="intervals", low=1)
    high: float = param(0.8, "load above which to change, and to aim for", low=0, above=True)
    low: float = param(0.4, "load below which to change", low=0)

    def check(self) -> None:
        """The lower bound must be below the upper one."""
        if self.low >= self.high:
            raise InputError("low", f"must be below high ({self.high:g}), got {self.low:g}")


def dabs(history: History, _applied: Applied, params: DabsParams) -> Decision:
    """Change an operator whose predicted load leaves the range from `low` to `high`.

    >>> from penstock.core.snapshot import Snapshot
    >>> op = OperatorSnapshot(name="map", parallelism=3, queue=70, service_time_s=0.3)
    >>> now = Snapshot(at=0, offered={"map": 250 / 30}, operators={"map": op})
    >>> dabs([now], [], DabsParams()).changes
    {'map': 4}
    """
    now = history[-1]
    # strictly less than `history` intervals ago, so that exactly that many count
    recent = within(history, (params.history - 0.5) * params.interval_s)

    def answer(op: OperatorSnapshot) -> Target:
        samples = [
            (past.at, rate)
            for past in recent
            if op.name in past.operators and (rate := past.arrival_rate(op.name)) is not None
        ]
        if now.arrival_rate(op.name) is None or op.queue is None or not op.replica_capacity:
            return keep(op.parallelism, Reason.METRICS_MISSING)
        rate = max(0.0, line_at(samples, now.at + params.interval_s))
        return _target(op, rate * params.interval_s, params)

    return each_operator("dabs", now, answer)


def _target(op: OperatorSnapshot, predicted: float, params: DabsParams) -> Target:
    k, pending = op.parallelism, op.queue or 0.0
    capacity = (op.replica_capacity or 0.0) * params.interval_s
    expected = predicted + pending
    load = expected / (k * capacity)
    numbers = {"predicted": predicted, "pending": pending, "k": k, "capacity": capacity}
    numbers |= {"load": load, "expected": expected, "high": params.high}
    if params.low <= load <= params.high:
        return keep(k, Reason.LOAD_IN_RANGE, LOAD, **numbers)
    wanted = max(1, ceil(expected / (params.high * capacity)))
    reason = Reason.RATE_ABOVE_CAPACITY if load > params.high else Reason.RATE_BELOW_CAPACITY
    return Target(k, wanted, reason, SIZE, numbers | {"wanted": wanted})


POLICY = Policy(
    name="dabs",
    summary="size for the load that a line through the last intervals predicts",
    paper="DABS-Storm, 2019",
    decide=dabs,
    params=DabsParams,
    measures=("queue", "service_time_s", "input_rate", "output_rate", "busy"),
    lookback_s=lambda params: (params.history - 0.5) * params.interval_s,
    style=PolicyStyle("#882255", "mixed", "<"),
)
