"""What the tasks of one batch did, by Spark's status store. Pure values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """One stage of a batch."""

    tasks: int
    #: Seconds of all tasks together, and of their processors.
    run_s: float
    cpu_s: float = 0.0
    #: Seconds of the slowest task and of the median task.
    longest_s: float = 0.0
    median_s: float = 0.0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """All stages of a batch, which run one after the other."""

    stages: tuple[StageFacts, ...]

    @property
    def run_s(self) -> float:
        """Seconds of all tasks together."""
        return sum(stage.run_s for stage in self.stages)

    @property
    def cpu_s(self) -> float:
        """Processor seconds of all tasks together."""
        return sum(stage.cpu_s for stage in self.stages)

    @property
    def heaviest(self) -> StageFacts | None:
        """The stage whose slowest task takes longest: it decides how long the batch takes."""
        return max(self.stages, key=lambda stage: stage.longest_s, default=None)

    def useful_slots(self) -> int | None:
        """Return how many task slots shorten the batch: with more, the slowest task decides.

        >>> hot = StageFacts(tasks=8, run_s=10.0, longest_s=5.0, median_s=0.7)
        >>> TaskFacts(stages=(hot,)).useful_slots()
        2
        """
        stage = self.heaviest
        if stage is None or stage.longest_s <= 0:
            return None
        return max(1, min(stage.tasks, -int(-stage.run_s // stage.longest_s)))


def find_typical(facts: Sequence[TaskFacts]) -> TaskFacts | None:
    """Return the batch with the median sum of task seconds; None without batches."""
    ordered = sorted(facts, key=lambda batch: batch.run_s)
    return ordered[len(ordered) // 2] if ordered else None
