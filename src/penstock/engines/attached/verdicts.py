"""Verdicts: why more executors will not help a query, with the evidence. Pure functions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median

from penstock.engines.attached.progress import QueryProgress
from penstock.engines.attached.task_facts import StageFacts, TaskFacts, find_typical
from penstock.engines.query_events import ExecutorEffectEvent

#: Batches without which nothing is judged.
MIN_BATCHES = 5
#: A step that takes this share of a batch decides how long it takes.
_MAIN_SHARE = 0.5
#: The slowest task takes this many times as long as the median task: one partition is hot.
_HOT_FACTOR = 4.0
#: Batches below this length are overhead more than anything else.
_MIN_BATCH_S = 1.0
#: A change of executors has an effect if it brings this share of what it could bring.
_MIN_GAIN = 0.3
#: Batches that read the same number of rows within this share are at a limit.
_SAME_ROWS = 0.01
#: Steps in which the driver plans or lists, and no executor works.
_DRIVER_STEPS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets")


class Culprit(StrEnum):
    """What keeps a query from being faster. Stable words: they are in journals."""

    HOT_PARTITION = "hot-partition"
    FEW_PARTITIONS = "few-partitions"
    DRIVER = "driver"
    STATE_COMMIT = "state-commit"
    SINK = "sink"
    SOURCE_LIMIT = "source-limit"
    LOCALITY_WAIT = "locality-wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingVerdict:
    """More executors will not help: why, what was measured, and what would help."""

    culprit: Culprit
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """What is known of a query when it is judged."""

    #: The last batches, oldest first.
    progress: Sequence[QueryProgress]
    #: What tasks did in some of these batches.
    tasks: Sequence[TaskFacts] = ()
    executors: int = 1
    #: Task slots of one executor.
    cores: int = 1
    #: Rows that wait; None if unknown.
    backlog_rows: float | None = None
    #: Whether rows arrive faster than they are read, or batches take longer than they may.
    is_behind: bool = True
    #: The effect of the last change of executors.
    effect: ExecutorEffectEvent | None = None
    #: Executors that ran no task of the last batches.
    idle_executors: int = 0
    #: Spark's spark.locality.wait; None if unknown.
    locality_wait_s: float | None = None
    #: What a replica is, if it is no executor.
    unit: str | None = None

    @property
    def slots(self) -> int:
        """Tasks that can run at once."""
        return self.executors * self.cores

    @property
    def work_s(self) -> float:
        """Seconds that a batch usually works."""
        return median(progress.work_s or 0.0 for progress in self.progress)

    @property
    def batch_s(self) -> float:
        """Seconds that a batch usually takes."""
        return median(progress.duration_s for progress in self.progress)


def judge(facts: QueryFacts) -> tuple[ScalingVerdict, ...]:
    """Return every reason why more executors will not help; empty if none is known.

    A query that keeps up needs no verdict, and a few batches prove nothing.
    """
    if not facts.is_behind or len(facts.progress) < MIN_BATCHES:
        return ()
    rules = RULES if facts.unit is None else PARTITION_RULES
    verdicts = (rule(facts) for rule in rules)
    return tuple(verdict for verdict in verdicts if verdict is not None)


def judge_driver(facts: QueryFacts) -> ScalingVerdict | None:
    """The driver spends most of a batch on planning, listing and logging."""
    steps = {step: _usual_step_s(facts.progress, step) for step in _DRIVER_STEPS}
    spent_s = sum(steps.values())
    if facts.batch_s < _MIN_BATCH_S or spent_s < _MAIN_SHARE * facts.batch_s:
        return None
    slowest = max(steps, key=lambda step: steps[step])
    return ScalingVerdict(
        culprit=Culprit.DRIVER,
        evidence=f"{spent_s:.1f} of {facts.batch_s:.1f} s of a batch, most of it in {slowest}",
        advice="plan fewer and larger batches, list fewer files, or simplify the query",
    )


def judge_hot_partition(facts: QueryFacts) -> ScalingVerdict | None:
    """One task takes much longer than the others, so the batch waits for it."""
    stage = _find_main_stage(facts)
    if stage is None or stage.tasks < 2 or stage.median_s <= 0:
        return None
    factor = stage.longest_s / stage.median_s
    if factor < _HOT_FACTOR or stage.run_s / stage.longest_s >= facts.slots:
        return None
    times = f"the slowest of {stage.tasks} tasks took {stage.longest_s:.1f} s"
    return ScalingVerdict(
        culprit=Culprit.HOT_PARTITION,
        evidence=f"{times}, the median task {stage.median_s:.2f} s",
        advice="spread the rows of this key or partition: salt the key, or repartition first",
    )


def judge_few_partitions(facts: QueryFacts) -> ScalingVerdict | None:
    """A stage has no more tasks than there are slots, so more slots stay empty."""
    stage = _find_main_stage(facts)
    if stage is None or stage.tasks > facts.slots:
        return None
    return ScalingVerdict(
        culprit=Culprit.FEW_PARTITIONS,
        evidence=f"the main stage has {stage.tasks} tasks, and {facts.slots} can run at once",
        advice="more partitions: of the topic, by minPartitions, or spark.sql.shuffle.partitions",
    )


def judge_state_commit(facts: QueryFacts) -> ScalingVerdict | None:
    """Tasks spend most of their time on the commit of the state."""
    states = [progress.state for progress in facts.progress if progress.state is not None]
    typical = find_typical(facts.tasks)
    if not states or typical is None or typical.run_s <= 0 or facts.batch_s < _MIN_BATCH_S:
        return None
    commit_s = median(state.commit_s for state in states)
    if commit_s < _MAIN_SHARE * typical.run_s:
        return None
    return ScalingVerdict(
        culprit=Culprit.STATE_COMMIT,
        evidence=f"{commit_s:.1f} of {typical.run_s:.1f} task seconds of a batch are state commits",
        advice="RocksDB with changelog checkpointing, faster storage, or less frequent batches",
    )


def judge_sink(facts: QueryFacts) -> ScalingVerdict | None:
    """More executors made the query no faster, though every slot has a task."""
    effect, stage = facts.effect, _find_main_stage(facts)
    if effect is None or effect.executors <= effect.before or effect.speed_before <= 0:
        return None
    if stage is not None and stage.tasks < facts.slots:
        return None  # there were no tasks for the new executors
    possible = effect.executors / effect.before - 1
    gain = effect.speed / effect.speed_before - 1
    if gain >= _MIN_GAIN * possible or facts.idle_executors:
        return None
    return ScalingVerdict(
        culprit=Culprit.SINK,
        evidence=(
            f"{effect.before} -> {effect.executors} {facts.unit or 'executors'}: "
            f"{effect.speed_before:g} -> {effect.speed:g} rows/s after {effect.batches} batches"
        ),
        advice="the sink, or a service that tasks call, takes no more rows: scale that",
    )


def judge_source_limit(facts: QueryFacts) -> ScalingVerdict | None:
    """Every batch reads the same number of rows while rows wait, and is done before its time."""
    rows = [sum(source.rows or 0 for source in progress.sources) for progress in facts.progress]
    is_same = min(rows) > 0 and max(rows) - min(rows) <= _SAME_ROWS * max(rows)
    if not is_same or not facts.backlog_rows or facts.backlog_rows < median(rows):
        return None
    idle_s = _usual_gap_s(facts.progress)
    if idle_s < _MAIN_SHARE * facts.batch_s:
        return None  # without the limit batches would be longer, but not more frequent
    return ScalingVerdict(
        culprit=Culprit.SOURCE_LIMIT,
        evidence=(
            f"each of {len(rows)} batches read {median(rows):g} rows and then waited "
            f"{idle_s:.1f} s, while {facts.backlog_rows:,.0f} rows wait"
        ),
        advice="raise maxOffsetsPerTrigger or maxFilesPerTrigger, or trigger more often",
    )


def judge_locality_wait(facts: QueryFacts) -> ScalingVerdict | None:
    """Executors stand idle because tasks wait for the executor that has their state."""
    has_state = any(progress.state is not None for progress in facts.progress)
    if not has_state or not facts.idle_executors or not facts.locality_wait_s:
        return None
    wait = f"spark.locality.wait is {facts.locality_wait_s:g} s"
    return ScalingVerdict(
        culprit=Culprit.LOCALITY_WAIT,
        evidence=f"{facts.idle_executors} of {facts.executors} executors ran no task, and {wait}",
        advice="start the application with spark.locality.wait=0: state moves to idle executors",
    )


RULES: tuple[Callable[[QueryFacts], ScalingVerdict | None], ...] = (
    judge_hot_partition,
    judge_few_partitions,
    judge_driver,
    judge_state_commit,
    judge_source_limit,
    judge_locality_wait,
    judge_sink,
)
#: The rules where a replica is a partition: more of them help a query that has too few.
PARTITION_RULES = tuple(
    rule for rule in RULES if rule not in (judge_few_partitions, judge_locality_wait)
)


def _find_main_stage(facts: QueryFacts) -> StageFacts | None:
    """Return the stage that decides how long a batch takes; None if none does."""
    typical = find_typical(facts.tasks)
    stage = typical.heaviest if typical is not None else None
    if stage is None or facts.batch_s < _MIN_BATCH_S:
        return None
    return stage if stage.longest_s >= _MAIN_SHARE * facts.work_s else None


def _usual_step_s(progress: Iterable[QueryProgress], step: str) -> float:
    return median(trigger.durations.get(step, 0.0) for trigger in progress)


def _usual_gap_s(progress: Sequence[QueryProgress]) -> float:
    """Return the usual seconds between the end of a batch and the begin of the next."""
    gaps = (later.started_at - earlier.ended_at for earlier, later in pairwise(progress))
    return median(max(0.0, gap_s) for gap_s in gaps)
