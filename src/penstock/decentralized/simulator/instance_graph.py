"""The port between the simulated world and what its instances know of each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.decentralized.simulator.timeline import ScalingAction


@dataclass(slots=True, eq=False, kw_only=True)
class SimulatedInstance:
    """One operator instance: its stage of life and its records."""

    operator: int
    #: Birth order in the whole pipeline.
    number: int
    is_keeper: bool = False
    #: The step in which the instance became active; None: it waits for its start signal.
    active_since: int | None = None
    #: The instance has announced its end and gets no new records.
    is_stopping: bool = False
    #: The instance ended or crashed.
    is_gone: bool = False
    #: Records received in the current step, and records that wait.
    received: int = 0
    waiting: int = 0

    def receive(self, records: int) -> None:
        """Add records to the queue."""
        self.received += records
        self.waiting += records


#: Makes a copy of an instance that waits for its start signal.
MakeCopy = Callable[[SimulatedInstance], SimulatedInstance]


class InstanceGraph(Protocol):
    """Knows who sends to whom, and carries the messages that change it."""

    #: Every scaling action so far.
    actions: list[ScalingAction]
    #: Records that were sent to instances that are gone.
    lost: int

    def deliver(self, step: int) -> None:
        """Deliver all messages that are due."""

    def send_records(self, loads: Sequence[int], step: int) -> None:
        """Send the load of every operator to its instances."""

    def count_siblings(self, instance: SimulatedInstance) -> int:
        """Return how many instances its operator has, as the instance can know it."""

    def start_action(self, instance: SimulatedInstance, change: int, step: int) -> None:
        """Let an instance start copies of itself, or (-1) stop itself."""

    def announce(self, step: int) -> None:
        """Deliver the announcements of the actions of this step."""

    def note_processed(self, instance: SimulatedInstance, records: int, step: int) -> None:
        """Note records that left the queue of an instance; a stopping one may end now."""

    def crash(self, instance: SimulatedInstance) -> None:
        """Remove an instance without any message."""

    def take_message_counts(self) -> list[int]:
        """Return the messages that arrived since the last call, by operator of their action."""
