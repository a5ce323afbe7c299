"""Figures of the whole service, and how long it is measured."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engines.spark.cluster.process_times import ProcessTimes
from penstock.errors import InputError
from penstock.pubsub.bench.delay_steps import DelayStep


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProfile:
    """What the batches of one operator cost at full load."""

    batches: int
    rows_per_batch: float
    #: From plan to commit, in the mean; and the longest task of the batch.
    batch_s: float
    task_s: float
    #: CPU seconds in tasks, as a share of the CPU time of all processes.
    cpu_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndToEndResult:
    """Figures of the service; an operation is one publication against one subscription."""

    operations_per_s: float
    #: Per second of CPU time of all processes together.
    operations_per_cpu_s: float
    publications_per_s: float
    measured_s: float
    #: CPU seconds at full load.
    times: ProcessTimes
    profile: Mapping[str, OperatorProfile]
    half_rate_per_s: float
    delay_p50_s: float
    delay_p95_s: float
    delayed_publications: int
    #: Where publications waited at half load.
    delay_steps: tuple[DelayStep, ...]
    #: Publications compared with brute force, and how many of them were wrong.
    checked_publications: int
    wrong_publications: int
    subscribe_s: float
    load_average: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLength:
    """How long each phase is measured."""

    full_s: float = 30.0
    half_s: float = 30.0
    #: Time at the beginning of a phase that does not count.
    warm_up_s: float = 8.0
    #: Planned time of a batch.
    batch_s: float = 1.0
    #: The share of the machine that batches may take beside their rows; None: every half second.
    overhead_share: float | None = None

    def __post_init__(self) -> None:
        times = (
            ("--seconds", self.full_s),
            ("--seconds", self.half_s),
            ("--batch", self.batch_s),
            ("--overhead-share", self.overhead_share),
        )
        for name, value in times:
            if value is not None and not 0 < value < math.inf:
                raise InputError(name, f"must be above 0 and finite, got {value:g}")
