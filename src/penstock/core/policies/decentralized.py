"""Decentralized: every instance decides alone whether to duplicate itself or to stop.

Belkhiria, Tedeschi, "A Fully Decentralized Autoscaling Algorithm for Stream Processing
Applications", Auto-DaSP 2019, section 4. The decision of one instance is `decide_alone`
(`core/instance_decision.py`); the policy asks it for every instance. The protocol that keeps the
graph consistent is not part of it. The paper's algorithm 4 starts new nodes "if n > 1"; n >= 1 is
meant.

Where replicas have decided themselves (`OperatorSnapshot.votes`), the policy decides nothing: it
reports what their votes add up to.
"""

from random import Random

from penstock.core.decision import Decision, Target, keep
from penstock.core.instance_decision import DecentralizedParams, decide_alone, probability
from penstock.core.numbers import MAX_COUNT
from penstock.core.params import check_names, look_up
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.vote_count import VoteCount

RULE = (
    "load of one instance l = {load}, capacity {capacity}, {n} instances: "
    "p = floor({load} x {n} / ({r} x {capacity}) - {n}) / {n} = {p}; after all decided: {wanted}"
)
VOTES = (
    "{voters} of {n} replicas decided alone: on average load l = {load}, capacity {capacity}, "
    "p = {p}; {n} + {copies} copies - {stops} stops = {proposal}"
)


def decentralized(history: History, _applied: Applied, params: DecentralizedParams) -> Decision:
    """Return the number of instances after each of them has decided once.

    >>> op = OperatorSnapshot(name="map", parallelism=7, input_rate=4200, service_time_s=0.002)
    >>> now = Snapshot(at=0, operators={"map": op})
    >>> 7 < decentralized([now], [], DecentralizedParams()).targets["map"].wanted <= 14
    True
    """
    snapshot = history[-1]
    check_names(params.capacity, snapshot.operators, "capacity")
    return each_operator("decentralized", snapshot, lambda op: _target(op, snapshot, params))


def _target(op: OperatorSnapshot, snapshot: Snapshot, params: DecentralizedParams) -> Target:
    if op.votes is not None:
        return report_votes(op.votes)
    n, arrivals = op.parallelism, snapshot.arrival_rate(op.name)
    capacity = look_up(params.capacity, op.name)
    if capacity is None and op.service_time_s:
        capacity = 1 / op.service_time_s
    if op.input_rate is None or not capacity:
        return keep(n, Reason.METRICS_MISSING)
    # the input rate of an instance never exceeds its capacity; the arrivals show its true load
    load = max(op.input_rate, arrivals or 0.0) / n
    # a separate generator for each operator and time, so that the answer is reproducible
    draw = Random(f"{params.seed}/{snapshot.at!r}/{op.name}").random
    wanted = n + sum(
        decide_alone(load, n, capacity, params, is_keeper=instance == 0, draw=draw)
        for instance in range(n)
    )
    wanted = min(wanted, MAX_COUNT)
    p = probability(load, n, capacity, params.r)
    numbers = {"load": load, "capacity": capacity, "n": n, "r": params.r, "p": p, "wanted": wanted}
    if wanted == n:
        return keep(n, Reason.LOAD_IN_RANGE, RULE, **numbers)
    reason = Reason.INSTANCES_DUPLICATE if wanted > n else Reason.INSTANCES_STOP
    return Target(n, wanted, reason, RULE, numbers)


def report_votes(votes: VoteCount) -> Target:
    """Return the target that replicas have given themselves.

    >>> report_votes(VoteCount(before=2, after=4, voters=2, copies=3, stops=0)).proposal
    5
    """
    if votes.is_fixed:
        return keep(votes.before, Reason.FIXED)
    if not votes.voters:
        return keep(votes.before, Reason.NO_VOTE)
    numbers = {
        "n": votes.before,
        "voters": votes.voters,
        "load": votes.load,
        "capacity": votes.capacity,
        "p": votes.probability,
        "copies": votes.copies,
        "stops": votes.stops,
        "proposal": votes.proposal,
    }
    n, wanted = votes.before, max(1, votes.proposal)
    reason = Reason.LOAD_IN_RANGE
    if wanted != n:
        reason = Reason.INSTANCES_DUPLICATE if wanted > n else Reason.INSTANCES_STOP
    target = Target(n, wanted, reason, VOTES, numbers)
    is_capped = votes.after < wanted
    bound = Reason.CAPPED_BY_MAXIMUM if is_capped else Reason.RAISED_TO_MINIMUM
    return target.guarded("bounds", votes.after, bound)


POLICY = Policy(
    name="decentralized",
    summary="every instance decides alone to duplicate or to stop",
    paper="A Fully Decentralized Autoscaling Algorithm, 2019",
    decide=decentralized,
    params=DecentralizedParams,
    measures=("input_rate", "service_time_s"),
    decides_alone=True,
    style=PolicyStyle("#44AA99", "dashed", "H"),
)
