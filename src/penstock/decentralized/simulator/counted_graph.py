"""Counted mode: messages follow from shared neighbour sets, without sending them one by one.

In a network without faults, all neighbours of an operator know the same instances at every step:
an announcement arrives everywhere in the step of the decision. So one set per operator replaces
the sets of all instances, and the number of messages is a product. A test compares every step
with the exact mode.
"""

from collections.abc import Sequence

from penstock.decentralized.simulator.instance_graph import MakeCopy, SimulatedInstance
from penstock.decentralized.simulator.timeline import ScalingAction

#: An action and the instances it is about: the copies, or the instance that stops.
_Concerned = tuple[ScalingAction, list[SimulatedInstance]]


class CountedGraph:
    """Neighbour sets by operator, shared by all instances."""

    def __init__(
        self, operators: Sequence[Sequence[SimulatedInstance]], make_copy: MakeCopy
    ) -> None:
        self.actions: list[ScalingAction] = []
        self.lost = 0
        self._make_copy = make_copy
        #: Instances that neighbours know, by operator, in birth order.
        self._known = [list(instances) for instances in operators]
        self._receiver_counts = [len(instances) for instances in operators]
        self._messages = [0] * len(operators)
        self._announced: list[_Concerned] = []
        self._acknowledged: list[_Concerned] = []
        self._starts: list[_Concerned] = []
        #: Stopping instances with all acknowledgements.
        self._may_end: dict[SimulatedInstance, ScalingAction] = {}

    def deliver(self, step: int) -> None:
        """Deliver the starts and acknowledgements that were sent in the step before."""
        starts, self._starts = self._starts, []
        acknowledged, self._acknowledged = self._acknowledged, []
        for action, copies in starts:
            self._count(action, len(copies))
            action.started, action.end_step = len(copies), step
            for copy in copies:
                copy.active_since = step
        for action, concerned in acknowledged:
            self._count(action, action.neighbours)
            if action.copies:
                self._starts.append((action, concerned))
            else:
                self._may_end[concerned[0]] = action

    def send_records(self, loads: Sequence[int], step: int) -> None:  # noqa: ARG002 - the port's
        """Deal the records of every operator in turn to the instances that its senders know."""
        for operator, load in enumerate(loads):
            receivers = self._receivers(operator)
            self._receiver_counts[operator] = len(receivers)
            each, rest = divmod(load, len(receivers))
            for place, instance in enumerate(receivers):
                instance.receive(each + (place < rest))

    def count_siblings(self, instance: SimulatedInstance) -> int:
        """Return how many instances got records in this step."""
        return self._receiver_counts[instance.operator]

    def start_action(self, instance: SimulatedInstance, change: int, step: int) -> None:
        """Plan an announcement to all neighbours."""
        copies = [self._make_copy(instance) for _ in range(change)]
        action = ScalingAction(
            operator=instance.operator,
            step=step,
            copies=len(copies),
            neighbours=self._count_neighbours(instance.operator),
        )
        instance.is_stopping = change < 0
        self.actions.append(action)
        self._announced.append((action, copies or [instance]))

    def announce(self, step: int) -> None:  # noqa: ARG002 - the port's
        """Let all neighbours know the copies, and forget instances that stop."""
        announced, self._announced = self._announced, []
        for action, concerned in announced:
            self._count(action, action.neighbours)
            if action.copies:
                self._known[action.operator] += concerned
        for operator in {action.operator for action, _ in announced if not action.copies}:
            self._known[operator] = [i for i in self._known[operator] if not i.is_stopping]
        self._acknowledged = announced

    def note_processed(self, instance: SimulatedInstance, records: int, step: int) -> None:  # noqa: ARG002 - the port's
        """End an instance that has all acknowledgements and no records."""
        if instance.is_stopping and not instance.waiting and instance in self._may_end:
            self._may_end.pop(instance).end_step = step
            instance.is_gone = True

    def crash(self, instance: SimulatedInstance) -> None:
        """Refuse: with a crash the neighbours would no longer know the same."""
        raise ValueError(f"instance {instance.number} cannot crash: sets are shared")

    def take_message_counts(self) -> list[int]:
        """Return the messages since the last call, by operator."""
        counts, self._messages = self._messages, [0] * len(self._messages)
        return counts

    def _receivers(self, operator: int) -> list[SimulatedInstance]:
        """Return the instances that get records; a source feeds only those that are active."""
        known = self._known[operator]
        return known if operator else [i for i in known if i.active_since is not None]

    def _count(self, action: ScalingAction, messages: int) -> None:
        action.messages += messages
        self._messages[action.operator] += messages

    def _count_neighbours(self, operator: int) -> int:
        sides = (operator - 1, operator + 1)
        return sum(len(self._known[side]) for side in sides if 0 <= side < len(self._known))
