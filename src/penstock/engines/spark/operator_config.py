"""The config of an operator: inputs, outputs and rules, for processes without its code."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.engines.microbatch.replica_vote import VotingRules
from penstock.engines.spark.kinds.kind import SourceRules, find_spark_kind
from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline

#: Planned time of a batch, in seconds: a change takes effect with the next batch.
BATCH_S = 1.0
#: Shorter intervals between batches only cost processor time of the driver.
MIN_INTERVAL_S = 0.5


def compute_min_interval_s(batch_s: float) -> float:
    """Return the minimum time from one plan to the next, half of a batch or more.

    >>> compute_min_interval_s(0.5), compute_min_interval_s(1.0), compute_min_interval_s(2.0)
    (0.5, 0.5, 1.0)
    """
    return max(MIN_INTERVAL_S, batch_s / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """Times of batches and snapshots."""

    #: Planned time of a batch, and minimum time from one batch to the next.
    batch_s: float = BATCH_S
    min_interval_s: float = MIN_INTERVAL_S
    #: The window of a snapshot.
    window_s: float = 10.0
    #: The share of the machine that batches may take beside their rows: the interval follows
    #: from it, and sources wait for rows. None: the minimum time is fixed.
    overhead_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorConfig:
    """The config of one operator, for its source and its sink."""

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    writes: str | None = None
    #: even, load, or key:COLUMN.
    grouping: str = "even"
    timeout_s: float | None = None
    queue_size: int | None = None
    #: The topic of dropped rows; None: they are only counted.
    dropped_to: str | None = None
    #: By downstream operator: the waiting rows above which this one stops reading, and the
    #: topics in which they wait.
    limits: Mapping[str, int] = field(default_factory=dict)
    limited_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    batch_s: float = BATCH_S
    #: Minimum time from the begin of one batch to that of the next.
    min_interval_s: float = MIN_INTERVAL_S
    #: Whether its source waits for rows, and answers as soon as there are some.
    waits_for_rows: bool = False
    #: Keyed state: number of slices (0 without), inputs with a key, allowed lateness.
    slices: int = 0
    keyed: tuple[str, ...] = ()
    delay_us: int = 0
    #: An input without new rows for this long does not hold the watermark; None: it always does.
    idle_s: float | None = None
    #: Whether batches end with source batches if possible: a downstream operator uses event time.
    keeps_batches: bool = False
    #: Inputs of which a batch takes whole commits only.
    whole_commits: tuple[str, ...] = ()
    #: The rules of its kind for the source.
    source: SourceRules = SourceRules()
    #: How its replicas decide alone; None: they run as many as the command says.
    voting: VotingRules | None = None

    @property
    def key(self) -> str | None:
        """The column by which rows are dealt; None without one."""
        return self.grouping.removeprefix("key:") if self.grouping.startswith("key:") else None

    def save(self, layout: RunLayout) -> None:
        """Write it for source and sink."""
        write_json(layout.config(self.name), asdict(self))

    @classmethod
    def load(cls, layout: RunLayout, operator: str) -> "OperatorConfig":
        """Read what `save` wrote."""
        data: Mapping[str, Any] = read_json(layout.config(operator))
        lists = {name: tuple(data.get(name, ())) for name in ("reads", "keyed", "whole_commits")}
        source = SourceRules(**data.get("source", {}))
        voting = VotingRules(**rules) if (rules := data.get("voting")) else None
        return cls(**{**data, **lists, "source": source, "voting": voting})


def make_operator_config(
    pipeline: Pipeline,
    operator: Operator,
    timing: BatchTiming,
    voting: VotingRules | None = None,
) -> OperatorConfig:
    """Return the config of an operator."""
    options = operator.options
    behind = {
        other.name: other.options.queue_limit
        for other in pipeline.operators.values()
        if {*operator.outputs} & {*other.reads} and other.options.queue_limit is not None
    }
    topics = {
        name: tuple(t for t in pipeline.operators[name].reads if t in operator.outputs)
        for name in behind
    }
    kind = find_spark_kind(operator.kind)
    return OperatorConfig(
        name=operator.name,
        kind=operator.kind,
        reads=operator.reads,
        writes=operator.writes,
        grouping=options.grouping,
        timeout_s=options.timeout_s,
        queue_size=options.queue_size,
        dropped_to=options.dropped_to,
        limits=behind,
        limited_topics=topics,
        batch_s=timing.batch_s,
        min_interval_s=timing.min_interval_s,
        waits_for_rows=timing.overhead_share is not None,
        idle_s=pipeline.idle_s,
        keeps_batches=kind.source.needs_whole_batches or _feeds_event_time(pipeline, operator),
        whole_commits=options.whole_commits,
        source=kind.source,
        # Spark plans the tasks of an operator with its own state
        voting=None if kind.has_spark_state else voting,
        **kind.config_fields(operator),
    )


def _feeds_event_time(pipeline: Pipeline, operator: Operator) -> bool:
    """Whether a downstream operator uses event time."""
    behind = [op for op in pipeline.operators.values() if {*op.reads} & {*operator.fills}]
    return any(
        find_kind(op.kind).uses_event_time or _feeds_event_time(pipeline, op) for op in behind
    )
