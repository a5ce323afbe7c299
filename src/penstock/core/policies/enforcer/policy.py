"""Enforcer: hosts and slices under a global and a local rule.

Barazzutti, Heinze, Martin, Onica, Felber, Fetzer, Jerzak, Pasin, Riviere, "Elastic Scaling
of a High-Throughput Content-Based Publish/Subscribe Engine" (E-StreamHub), ICDCS 2014,
section V.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.decision import Decision, Move, Placement
from penstock.core.numbers import NOISE, ceil
from penstock.core.params import Params, param
from penstock.core.policies.enforcer.slice_moves import release, relieve
from penstock.core.policy import Applied, History, Policy, PolicyStyle
from penstock.core.reasons import Reason
from penstock.core.snapshot import HostSnapshot, Snapshot
from penstock.errors import InputError

RULE = (
    "mean CPU of {n} hosts is {mean} (range {low} to {high}), highest {highest}, lowest {lowest} "
    "(range {local_low} to {local_high}); target {target}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnforcerParams(Params):
    """Parameters of the enforcer."""

    low: float = param(0.30, "mean CPU below which to scale in", low=0, high=1)
    high: float = param(0.70, "mean CPU above which to scale out", low=0, high=1)
    local_low: float = param(0.20, "CPU of one host below which to empty it", low=0, high=1)
    local_high: float = param(0.80, "CPU of one host above which to relieve it", low=0, high=1)
    target: float = param(0.50, "CPU that hosts should end up with", low=0, above=True, high=1)
    hold_s: float = param(30.0, "how long a rule must be broken before it acts", unit="s", low=0)
    grace_s: float = param(30.0, "least time between two migrations", unit="s", low=0)

    def check(self) -> None:
        """Raise `InputError` unless the target is within both ranges."""
        for low, high in (("low", "high"), ("local_low", "local_high")):
            if not getattr(self, low) < self.target < getattr(self, high):
                problem = f"must lie between {low} and {high}, got {self.target:g}"
                raise InputError("target", problem)


def enforcer(history: History, applied: Applied, params: EnforcerParams) -> Decision:
    """Scale the hosts out or in, or rebalance one of them, by moving few and light slices.

    >>> from penstock.core.snapshot import SliceSnapshot
    >>> def host(name, **slices):
    ...     pieces = {n: SliceSnapshot(cpu=c, memory=m) for n, (c, m) in slices.items()}
    ...     return HostSnapshot(name=name, slices=pieces)
    >>> hosts = {"h1": host("h1", ap=(0.24, 1), m=(0.5, 20)), "h2": host("h2", m2=(0.7, 20))}
    >>> run = [Snapshot(at=t, hosts=hosts) for t in (0.0, 30.0)]
    >>> [move.slice for move in enforcer(run, [], EnforcerParams()).placement.moves]
    ['m2', 'ap']
    """
    now = history[-1]
    if not now.hosts:
        raise InputError("hosts", "missing: the enforcer decides about hosts and slices")
    broken = [Rule(params, "")] if Rule(params, "").broken_by(now) else _local_rules(now, params)
    if not broken:
        return _answer(now, params, Reason.IN_RANGE)
    lasting = [rule for rule in broken if rule.broken_for(history) >= params.hold_s - NOISE]
    if not lasting:
        return _answer(now, params, Reason.WAITING)
    if any(now.at - past.at < params.grace_s - NOISE for past in applied if past.is_change):
        return _answer(now, params, Reason.GRACE)
    rule = lasting[0]
    how = rule.broken_by(now)
    assert how is not None
    moves, hosts = _act(now, how, rule.host, params)
    return _answer(now, params, how, moves, hosts)


@dataclass(frozen=True, slots=True)
class Rule:
    """The global rule, or the local one of a host."""

    params: EnforcerParams
    host: str

    def broken_by(self, snapshot: Snapshot) -> Reason | None:
        """Return how a snapshot breaks this rule; None if it does not."""
        params, hosts = self.params, snapshot.hosts
        if not self.host:
            mean = sum(host.load for host in hosts.values()) / max(1, len(hosts))
            if mean > params.high + NOISE:
                return Reason.MEAN_ABOVE_RANGE
            return Reason.MEAN_BELOW_RANGE if hosts and mean < params.low - NOISE else None
        if self.host not in hosts:
            return None
        if hosts[self.host].load > params.local_high + NOISE:
            return Reason.HOST_ABOVE_RANGE
        low = hosts[self.host].load < params.local_low - NOISE
        return Reason.HOST_BELOW_RANGE if low else None

    def broken_for(self, history: History) -> float:
        """Return the seconds for which it has been broken in the same way without interruption."""
        now = history[-1]
        how, began = self.broken_by(now), now.at
        for past in reversed(history):
            if self.broken_by(past) is not how:
                break
            began = past.at
        return now.at - began


def _local_rules(now: Snapshot, params: EnforcerParams) -> list[Rule]:
    """Return the broken local rules: those of busy hosts, busiest first, then of idle ones."""
    order = sorted(now.hosts.values(), key=_by_load)
    rules = [Rule(params, host.name) for host in order]
    busy = [r for r in reversed(rules) if r.broken_by(now) is Reason.HOST_ABOVE_RANGE]
    return busy + [r for r in rules if r.broken_by(now) is Reason.HOST_BELOW_RANGE]


def _act(now: Snapshot, how: Reason, host: str, params: EnforcerParams) -> tuple[list[Move], int]:
    hosts, most = now.hosts, now.max_hosts
    total = sum(host.load for host in hosts.values())
    if how is Reason.MEAN_ABOVE_RANGE:
        if most is not None and len(hosts) >= most:
            return [], len(hosts)  # to shuffle busy slices would help nobody
        # all hosts together may not be enough for the target
        target = max(params.target, total / most) if most is not None else params.target
        busy = [host for host in hosts.values() if host.load > target]
        return relieve(hosts, busy, target, most)
    if how is Reason.HOST_ABOVE_RANGE:
        return relieve(hosts, [hosts[host]], params.target, most)
    if how is Reason.HOST_BELOW_RANGE:
        return release(hosts, [hosts[host]], params.target)
    surplus = len(hosts) - max(1, ceil(total / params.target))
    idle = sorted(hosts.values(), key=_by_load)[: max(0, surplus)]
    return release(hosts, idle, params.target)


def _answer(
    now: Snapshot,
    params: EnforcerParams,
    reason: Reason,
    moves: Sequence[Move] = (),
    hosts: int | None = None,
) -> Decision:
    loads = [host.load for host in now.hosts.values()]
    n = len(loads)
    numbers = {
        "n": n,
        "mean": sum(loads) / n,
        "highest": max(loads),
        "lowest": min(loads),
    } | {key: getattr(params, key) for key in ("low", "high", "local_low", "local_high", "target")}
    wanted = n if hosts is None else hosts
    placement = Placement(n, wanted, reason, tuple(moves), RULE, numbers)
    return Decision(now.at, "enforcer", placement=placement)


def _by_load(host: HostSnapshot) -> tuple[float, str]:
    return host.load, host.name


POLICY = Policy(
    name="enforcer",
    summary="hosts and slices under a global and a local CPU rule",
    paper="E-StreamHub, ICDCS 2014, section V",
    decide=enforcer,
    params=EnforcerParams,
    measures=("cpu", "memory"),
    reads="hosts",
    lookback_s=lambda params: float(max(params.hold_s, params.grace_s)),
    style=PolicyStyle("#661100", "mixed", "*"),
)
