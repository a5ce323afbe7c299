"""The result of a process run: was every record processed exactly once, and at which cost."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.decentralized.node_state import NodeId, NodeState
from penstock.decentralized.processes.node_action import (
    DELETION,
    DUPLICATION,
    NodeAction,
)
from penstock.decentralized.processes.node_config import name_of
from penstock.decentralized.processes.record_ledger import RecordAccount
from penstock.decentralized.processes.run_monitor import OperatorSample, RunSample
from penstock.decentralized.processes.run_spec import ProcessRunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRunResult:
    """What a run has shown."""

    spec: ProcessRunSpec
    seconds: float
    sent: int
    accounts: tuple[RecordAccount, ...]
    actions: tuple[NodeAction, ...]
    #: Messages of the protocol by kind.
    messages: Mapping[str, int]
    samples: tuple[RunSample, ...]
    #: Most processes of nodes at once, and all that were started.
    peak_processes: int
    started_processes: int
    latencies_s: tuple[float, ...]
    #: Whether the counts at the sink are those of the functions called one after the other.
    has_right_counts: bool
    #: Nodes whose neighbours were not what they should be when all was quiet.
    wrong_views: tuple[str, ...]
    strangers: int

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that must not be; empty after a good run."""
        problems = [account.problem for account in self.accounts if not account.is_exact]
        if not self.has_right_counts:
            problems.append("the counts at the sink are wrong")
        problems += [f"wrong neighbours: {view}" for view in self.wrong_views]
        if len(self.actions) < self.spec.min_actions:
            count, min_actions = len(self.actions), self.spec.min_actions
            problems.append(f"{count} scaling actions, --min-actions is {min_actions}")
        return tuple(problems)

    @property
    def expected_messages(self) -> int:
        """Messages by the paper's formula, over all actions."""
        return sum(action.expected_messages for action in self.actions)

    @property
    def accuracies(self) -> list[float]:
        """Instances / ideal instances, of every operator in every sample under load."""
        return [op.instances / op.ideal for op in self.loaded_samples]

    @property
    def loaded_samples(self) -> list[OperatorSample]:
        """The samples of all operators while the source sent records."""
        return [op for sample in self.samples if sample.is_loaded for op in sample.operators]

    @property
    def ideal_throughput(self) -> float:
        """Mean share of the load that the instances could absorb at once."""
        capacity = self.spec.capacity
        loads = [(op.instances * capacity, op.load) for op in self.loaded_samples]
        shares = [min(1.0, most / load) if load else 1.0 for most, load in loads]
        return sum(shares) / len(shares) if shares else 1.0

    def count_actions(self, kind: str) -> int:
        """Return how many actions of a kind have ended."""
        return sum(action.kind == kind for action in self.actions)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON; names that the simulator also has mean the same there."""
        processed = {account.operator: account.processed for account in self.accounts}
        durations = [action.took_s for action in self.actions]
        return {
            "spec": self.spec.to_json(),
            "seconds": round(self.seconds, 3),
            "is_exactly_once": not self.problems,
            "problems": list(self.problems),
            "records": {
                "sent": self.sent,
                "processed": processed,
                "lost": sum(len(account.lost) for account in self.accounts),
                "repeated": sum(len(account.repeated) for account in self.accounts),
            },
            "actions": {
                "total": len(self.actions),
                "duplications": self.count_actions(DUPLICATION),
                "deletions": self.count_actions(DELETION),
                "nodes_started": sum(action.copies for action in self.actions),
                "seconds": percentiles(durations),
            },
            "messages": {
                "total": sum(self.messages.values()),
                "expected": self.expected_messages,
                "by_kind": dict(sorted(self.messages.items())),
                "per_step": [sample.messages for sample in self.samples],
            },
            "accuracy": percentiles(self.accuracies),
            "ideal_throughput": round(self.ideal_throughput, 4),
            "instances": [
                {op.name: op.instances for op in sample.operators} for sample in self.samples
            ],
            "latency_s": percentiles(self.latencies_s),
            "processes": {"peak": self.peak_processes, "started": self.started_processes},
            "strangers_refused": self.strangers,
            "samples": [sample.to_json() for sample in self.samples],
        }


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, 5th, 50th and 95th percentile (nearest rank).

    >>> percentiles([1.0, 2.0, 3.0, 4.0])
    {'mean': 2.5, 'p05': 1.0, 'p50': 2.0, 'p95': 4.0}
    """
    if not values:
        return {"mean": None, "p05": None, "p50": None, "p95": None}
    ranked, mean = sorted(values), sum(values) / len(values)
    ranks = {share: max(1, math.ceil(share * len(ranked) / 100)) for share in (5, 50, 95)}
    percentiles = {f"p{share:02}": round(ranked[rank - 1], 4) for share, rank in ranks.items()}
    return {"mean": round(mean, 4), **percentiles}


def find_wrong_views(states: Collection[NodeState]) -> list[str]:
    """Return the nodes whose neighbours are not the nodes of the operators beside theirs."""
    members: dict[int, set[NodeId]] = {}
    for state in states:
        members.setdefault(state.operator, set()).add(state.node)
    return [
        name_of(state.node)
        for state in states
        if state.neighbours.successors != members.get(state.operator + 1, set())
        or state.neighbours.predecessors != members.get(state.operator - 1, set())
    ]
