"""DS2: size every operator at once from true processing rates.

Kalavri et al., "Three Steps is All you Need: Fast, Accurate, Automatic Scaling Decisions
for Distributed Streaming Dataflows", OSDI 2018; used in the Pulsar paper (4.3) and in the
evaluation thesis (4.3). A backlog is ignored by design.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.decision import Decision, Target, keep
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.params import Params, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot

SIZE = (
    "one replica truly takes {input} / ({busy} busy x {k} replicas) = {capacity} records/s; "
    "wanted = ceil({target} / {capacity}) = {wanted}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ds2Params(Params):
    """Parameters of DS2."""

    memory_s: float = param(
        3600.0, "how long the last known selectivity of a silent operator is kept", unit="s", low=0
    )


def ds2(history: History, _applied: Applied, params: Ds2Params) -> Decision:
    """Give each operator just enough replicas for the rate that will reach it.

    An operator of unknown capacity keeps its parallelism but passes on the rate, so that
    one silent operator does not starve those below it.

    >>> from penstock.core.snapshot import Snapshot
    >>> a = OperatorSnapshot(name="a", parallelism=1, input_rate=50, output_rate=400, busy=1)
    >>> b = OperatorSnapshot(name="b", upstream=("a",), parallelism=1, input_rate=100, busy=1)
    >>> now = Snapshot(at=0, offered={"a": 100}, operators={"a": a, "b": b})
    >>> ds2([now], [], Ds2Params()).changes
    {'a': 2, 'b': 8}
    """
    snapshot, remembered = history[-1], within(history, params.memory_s)
    target_input: dict[str, float | None] = {}
    targets: dict[str, Target] = {}
    for name in snapshot.topology.order:
        op = snapshot.operators[name]
        # target input = offered + sum over upstream of (target input x selectivity), unrounded
        parts = [_passed_on(target_input[up], up, remembered) for up in op.upstream]
        if op.is_source or name in snapshot.offered:
            parts.append(snapshot.offered.get(name))
        target_input[name] = _sum(parts)
        targets[name] = _target(op, target_input[name])
    in_order = {name: targets[name] for name in snapshot.operators}
    return Decision(snapshot.at, "ds2", FrozenDict(in_order))


def _target(op: OperatorSnapshot, target_input: float | None) -> Target:
    k, capacity = op.parallelism, op.true_rate
    if capacity is None or target_input is None:
        return keep(k, Reason.METRICS_MISSING)
    wanted = max(1, ceil(target_input / capacity))
    numbers = {
        "input": op.input_rate,
        "busy": op.busy,
        "k": k,
        "capacity": capacity,
        "target": target_input,
        "wanted": wanted,
    }
    reason = Reason.RATE_ABOVE_CAPACITY if wanted > k else Reason.RATE_BELOW_CAPACITY
    return Target(k, wanted, Reason.FITS if wanted == k else reason, SIZE, numbers)


def _passed_on(rate: float | None, name: str, history: History) -> float | None:
    return None if rate is None else rate * last_selectivity(name, history)


def last_selectivity(name: str, history: History) -> float:
    """Records out per record in as last measured, 1 if it never was."""
    for snapshot in reversed(history):
        op = snapshot.operators.get(name)
        if op is not None and op.selectivity is not None:
            return op.selectivity
    return 1.0


def _sum(parts: Iterable[float | None]) -> float | None:
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


POLICY = Policy(
    name="ds2",
    summary="size all operators at once from true processing rates",
    paper="Three Steps is All you Need, OSDI 2018",
    decide=ds2,
    params=Ds2Params,
    measures=("input_rate", "output_rate", "busy"),
    lookback_s=lambda params: float(params.memory_s),
    style=PolicyStyle("#0072B2", "solid", "o"),
)
