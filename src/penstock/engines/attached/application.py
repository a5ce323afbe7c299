"""What an attached engine asks of the application that it is attached to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from penstock.engines.attached.file_backlog import FileCounter
from penstock.engines.attached.task_facts import TaskFacts


class Report(NamedTuple):
    """The progress of one trigger, and what its tasks did, if that is known."""

    progress: Mapping[str, Any]
    facts: TaskFacts | None = None


class FollowedQuery(Protocol):
    """A streaming query of the application."""

    #: Its name, or the begin of its id; unique in the application.
    name: str
    query_id: str
    #: The trigger interval; None if batches follow each other at once, or if it is unknown.
    trigger_s: float | None

    def read_new(self) -> Sequence[Report]:
        """Return the progress since the last call, oldest first."""

    def is_working(self) -> bool:
        """Whether a trigger is active."""

    def is_active(self) -> bool:
        """Whether it has not ended."""

    def read_error(self) -> str:
        """Return why it failed; "" if it did not."""

    def make_counter(self, number: int, description: str) -> FileCounter | None:
        """Return a counter of unread files for a source that reports no backlog."""


class Application(Protocol):
    """An application with streaming queries."""

    #: Task slots of one executor.
    cores: int
    #: Spark's spark.locality.wait; None if unknown.
    locality_wait_s: float | None

    def find_queries(self) -> Sequence[FollowedQuery]:
        """Return the queries to follow that are active, also new ones."""

    def is_alive(self) -> bool:
        """Whether the application still runs."""

    def count_tasks(self) -> Mapping[str, int]:
        """Return the tasks that each executor has run; empty if unknown."""
