"""The steps that are possible in a state of the pipeline."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from penstock.decentralized.checker.configuration import CheckConfig
from penstock.decentralized.checker.local_tables import (
    DUPLICATE,
    EMPTY,
    FREE,
    OUTSIDE,
    PROCESSED,
    RECORD,
    STOP,
    STOPPED,
    Delivery,
    LocalTables,
    NodeStep,
)
from penstock.decentralized.node_state import build_pipeline

#: Node states by slot, inboxes by slot, and the records in the pipeline.
GlobalState = tuple[int, ...]


class StepKind(Enum):
    """What happens in a step; decisions and offered records come from outside."""

    DUPLICATE = "duplicate"
    STOP = "stop"
    OFFER = "offer"
    DELIVER = "deliver"
    PROCESS = "process"

    @property
    def is_reaction(self) -> bool:
        """Whether the step continues what has begun."""
        return self in (StepKind.DELIVER, StepKind.PROCESS)


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step: which node does what; `peer` is the sender, or where a result or a copy goes."""

    kind: StepKind
    slot: int
    peer: int = OUTSIDE
    message: int = RECORD


Successor = tuple[GlobalState, PipelineStep]


class Transitions:
    """Enumerates the steps of a configuration."""

    def __init__(self, config: CheckConfig) -> None:
        self.config = config
        self.tables = LocalTables(config)
        self.slot_count = len(self.tables.names)
        size = config.max_instances
        self._siblings = [
            range(slot - slot % size + 1, slot - slot % size + size)
            for slot in range(self.slot_count)
        ]
        self.keepers = range(0, self.slot_count, size)

    def initial(self) -> GlobalState:
        """Return the state in which all nodes are active and nothing is under way."""
        size, names = self.config.max_instances, self.tables.names
        operators = [
            names[op * size : op * size + count] for op, count in enumerate(self.config.instances)
        ]
        states = [FREE] * self.slot_count
        for node, state in build_pipeline(operators).items():
            states[self.tables.slots[node]] = self.tables.number_state(state)
        return (*states, *([EMPTY] * self.slot_count), 0)

    def reactions(self, state: GlobalState) -> Iterator[Successor]:
        """Yield the steps that deliver a message or a record, or process a record."""
        count, tables = self.slot_count, self.tables
        for slot in range(count):
            node = state[slot]
            if node <= STOPPED:
                continue
            if inbox := state[count + slot]:
                for delivery in tables.deliveries(inbox):
                    yield self.deliver(state, slot, delivery)
            for target in tables.facts[node].targets:
                yield self.process(state, slot, target)

    def decisions(self, state: GlobalState) -> Iterator[Successor]:
        """Yield the steps that come from outside: decisions of nodes, and offered records."""
        facts = [self.tables.facts[node] for node in state[: self.slot_count]]
        may_scale = sum(fact.is_under_way for fact in facts) < self.config.actions
        for slot, fact in enumerate(facts):
            if fact.accepts_input and state[-1] < self.config.records:
                after = list(state)
                after[-1] += 1
                yield self._act(after, slot, RECORD, PipelineStep(StepKind.OFFER, slot))
            if may_scale and fact.can_stop:
                yield self._act(list(state), slot, STOP, PipelineStep(StepKind.STOP, slot))
            if may_scale and fact.can_scale:
                free = (peer for peer in self._siblings[slot] if state[peer] == FREE)
                if (peer := next(free, None)) is not None:
                    step = PipelineStep(StepKind.DUPLICATE, slot, peer)
                    yield self._act(list(state), slot, DUPLICATE + peer, step)

    def deliver(self, state: GlobalState, slot: int, delivery: Delivery) -> Successor:
        """Return the state after a delivery."""
        sender, message, rest = delivery
        after = list(state)
        after[self.slot_count + slot] = rest
        return self._act(
            after, slot, message, PipelineStep(StepKind.DELIVER, slot, sender, message)
        )

    def process(self, state: GlobalState, slot: int, target: int) -> Successor:
        """Return the state after a node has processed a record."""
        after = list(state)
        if target == OUTSIDE:
            after[-1] -= 1
        else:
            inbox = self.slot_count + target
            after[inbox] = self.tables.append(after[inbox], slot, RECORD)
        return self._act(after, slot, PROCESSED, PipelineStep(StepKind.PROCESS, slot, target))

    def _act(self, after: list[int], slot: int, message: int, step: PipelineStep) -> Successor:
        self._apply(after, slot, self.tables.step(after[slot], message))
        return tuple(after), step

    def _apply(self, after: list[int], slot: int, step: NodeStep) -> None:
        """Write what a node does into the state of the pipeline."""
        count, append = self.slot_count, self.tables.append
        after[slot] = step.state
        if step.created is not None:
            peer, node = step.created
            after[peer] = node
        for to, message in step.sends:
            after[count + to] = append(after[count + to], slot, message)
        if self.config.reuses_names and STOPPED in after[:count]:
            self._free_slots(after)

    def _free_slots(self, after: list[int]) -> None:
        """Let a stopped node's slot be used again once nobody knows the node any more."""
        count, tables = self.slot_count, self.tables
        mentions = 0
        for slot in range(count):
            mentions |= tables.facts[after[slot]].mentions
            mentions |= tables.inbox_mentions[after[count + slot]]
        for slot in range(count):
            is_known = mentions >> slot & 1 or after[count + slot] or slot in self.keepers
            if after[slot] == STOPPED and not is_known:
                after[slot] = FREE
