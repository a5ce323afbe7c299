"""What the nodes of a run report, put together: records, samples over time, actions, messages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.core.instance_decision import ideal
from penstock.decentralized.node_state import NodePhase
from penstock.decentralized.processes.node_action import DELETION, DUPLICATION, NodeAction
from penstock.decentralized.processes.record_ledger import RecordLedger
from penstock.decentralized.processes.run_spec import SOURCE, ProcessRunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSample:
    """One operator during one interval."""

    name: str
    #: Instances that work, that wait for their start signal, and that are about to stop.
    active: int
    starting: int
    stopping: int
    #: Records received per second.
    load: float
    queue: int
    #: Instances that the load needs.
    ideal: int
    #: Actions that ended in the interval: one for each instance that had decided.
    deciders: int = 0
    #: New instances of these duplications, and instances that stopped.
    copies: int = 0
    stops: int = 0
    #: Messages of the protocol that its instances have handled in the interval.
    messages: int = 0

    @property
    def instances(self) -> int:
        """Instances that share the load."""
        return self.active + self.starting


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """The whole pipeline during one interval."""

    at_s: float
    #: Whether the source still sends records.
    is_loaded: bool
    #: Records per second that the source has sent.
    offered: float
    operators: tuple[OperatorSample, ...]
    #: Messages of the protocol during the interval.
    messages: int
    processes: int
    #: Totals since the start.
    sent: int
    delivered: int
    actions: int

    def to_json(self) -> dict[str, Any]:
        """Return the sample as JSON."""
        return asdict(self)


class RunMonitor:
    """Adds up the reports of all nodes."""

    def __init__(self, spec: ProcessRunSpec) -> None:
        self._spec = spec
        *_, self._sink = spec.names
        self.ledger = RecordLedger(spec.names[1:])
        self.actions: list[NodeAction] = []
        self.latencies_s: list[float] = []
        self.counts: Counter[str] = Counter()
        #: Messages of the protocol by kind, of nodes by name.
        self._messages: dict[str, Counter[str]] = {}
        self._strangers: dict[str, int] = {}
        self._status: dict[str, Mapping[str, Any]] = {}
        self._operators: dict[str, str] = {}
        self._received: Counter[str] = Counter()
        self._last_s, self._last_sent, self._last_messages = 0.0, 0, 0
        self._last_actions, self._last_by_operator = 0, Counter[str]()

    def note_status(self, node: str, operator: str, status: Mapping[str, Any]) -> None:
        """Take the report of a node."""
        work = status["work"]
        self._status[node], self._operators[node] = status, operator
        self._messages[node] = Counter(status["messages"])
        self._strangers[node] = status["strangers"]
        self.actions += [NodeAction(**action) for action in status["actions"]]
        self._received[operator] += work["received"]
        if operator == SOURCE:
            self.ledger.add_sent(work["processed"])
        else:
            self.ledger.add_processed(operator, work["processed"])
        self.latencies_s += work["latencies_s"]
        self.counts.update(work["counts"])

    def note_end(self, node: str) -> None:
        """Forget a node that has ended, but not what it did."""
        self._status.pop(node, None)

    @property
    def messages(self) -> Counter[str]:
        """Messages of the protocol by kind."""
        return sum(self._messages.values(), Counter())

    @property
    def strangers(self) -> int:
        """Connections that nodes have refused."""
        return sum(self._strangers.values())

    @property
    def phases(self) -> dict[str, str | None]:
        """The phase of every node that lives."""
        return {node: status["phase"] for node, status in self._status.items()}

    def sample(self, now_s: float, *, is_loaded: bool) -> RunSample:
        """Return what happened since the last sample."""
        took_s = max(1e-9, now_s - self._last_s)
        sent, messages = self.ledger.sent, self.messages.total()
        by_operator = self._count_by_operator()
        sample = RunSample(
            at_s=round(now_s, 3),
            is_loaded=is_loaded,
            offered=round((sent - self._last_sent) / took_s, 1),
            operators=tuple(
                self._sample_operator(name, took_s, by_operator) for name in self._inner_names
            ),
            messages=messages - self._last_messages,
            processes=len(self._status),
            sent=sent,
            delivered=self.ledger.processed(self._sink),
            actions=len(self.actions),
        )
        self._received.clear()
        self._last_s, self._last_sent, self._last_messages = now_s, sent, messages
        self._last_actions, self._last_by_operator = len(self.actions), by_operator
        return sample

    def _count_by_operator(self) -> Counter[str]:
        """Return all messages so far, by operator."""
        counts: Counter[str] = Counter()
        for node, messages in self._messages.items():
            counts[self._operators[node]] += messages.total()
        return counts

    @property
    def _inner_names(self) -> Sequence[str]:
        return self._spec.names[1:-1]

    def _sample_operator(
        self, name: str, took_s: float, messages: Mapping[str, int]
    ) -> OperatorSample:
        statuses = [s for node, s in self._status.items() if self._operators[node] == name]
        phases = Counter(status["phase"] for status in statuses)
        load, params = self._received[name] / took_s, self._spec.params
        ended = [each for each in self.actions[self._last_actions :] if each.operator == name]
        return OperatorSample(
            name=name,
            active=phases[NodePhase.ACTIVE.value] + phases[NodePhase.DUPLICATING.value],
            starting=phases[NodePhase.IDLE.value] + phases[None],
            stopping=phases[NodePhase.STOPPING.value],
            load=round(load, 1),
            queue=sum(status["queue"] for status in statuses),
            ideal=ideal(load, self._spec.capacity, params.r),
            deciders=len(ended),
            copies=sum(action.copies for action in ended if action.kind == DUPLICATION),
            stops=sum(action.kind == DELETION for action in ended),
            messages=messages[name] - self._last_by_operator[name],
        )
