"""The part of a result that only runs on Spark have."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from penstock.core.frozen_dict import FrozenDict
from penstock.runs.result_parts import ResultPart, read_part, read_parts, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(ResultPart):
    """Median and maximum of a sample; None if it is empty."""

    median: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPeak(ResultPart):
    """Replicas that would carry the peak all the time, by the measured service times."""

    peak_rate: float = 0.0
    replicas: int = 0
    operators: Mapping[str, int] = field(default_factory=FrozenDict)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        whole = {"peak_rate": self.peak_rate, "replicas": self.replicas}
        return {**whole, "operators": dict(self.operators)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorChanges(ResultPart):
    """Executors that were requested and released, and how long each took."""

    bought: int = 0
    returned: int = 0
    bought_s: Spread = Spread()
    returned_s: Spread = Spread()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        times = {name: read_part(Spread, data, name) for name in ("bought_s", "returned_s")}
        return cls(bought=data["bought"], returned=data["returned"], **times)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMeasures(ResultPart):
    """The figures that only the ticks of a run on Spark give."""

    seconds: float = 0.0
    static_peak: StaticPeak = StaticPeak()
    #: Time that batches take without any work, on the longest path.
    floor_s: float | None = None
    #: Seconds and batches from a decision until it ran.
    change_s: Spread = Spread()
    change_batches: Spread = Spread()
    executor_changes: ExecutorChanges = ExecutorChanges()

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        return {item.name: to_plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        return cls(
            seconds=data.get("seconds", 0.0),
            static_peak=read_part(StaticPeak, data, "static_peak"),
            floor_s=data.get("floor_s"),
            change_s=read_part(Spread, data, "change_s"),
            change_batches=read_part(Spread, data, "change_batches"),
            executor_changes=read_part(ExecutorChanges, data, "executor_changes"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAccount(ResultPart):
    """Rows of one operator since the run began."""

    rows_in: int = 0
    rows_out: int = 0
    #: Rows that its function left out, and rows that it added.
    filtered: int = 0
    expanded: int = 0
    late: int = 0
    put_aside: int = 0
    dropped: int = 0
    #: Rows of its topics that it has not taken yet.
    waiting: int = 0
    #: Rows that no batch took, or that are in a record and not in the topic; and those that
    #: were taken or published more than once.
    lost: int = 0
    doubled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBalance(ResultPart):
    """What became of the records of a run on Spark, counted in its topics."""

    #: Records that came in.
    offered: int = 0
    #: Records that are in every last topic; None if records have no number.
    complete: int | None = None
    #: Records that are not in every last topic; None likewise.
    missing: int | None = None
    #: Rows that were written more than once.
    doubled: int = 0
    #: Rows with numbers that were never offered.
    strange: int = 0
    #: Rows that went to dead-letter topics.
    put_aside: int = 0
    #: Rows of each last topic.
    topics: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Rows that queues or timeouts dropped.
    dropped: int = 0
    #: Rows that no batch read.
    lost: int = 0
    #: Whether nothing waits at the end.
    drained: bool = False
    #: Rows that wait at the end.
    waiting: int = 0
    #: Rows in, out, filtered, late and waiting by operator.
    operators: Mapping[str, OperatorAccount] = field(default_factory=FrozenDict)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        return {item.name: to_plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        names = [item.name for item in fields(cls) if item.name in data]
        counts = {name: data[name] for name in names}
        return cls(**counts | {"operators": read_parts(OperatorAccount, data, "operators")})


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkResult:
    """How a run on Spark ended, what was measured, and what became of its records."""

    #: finished, cut (the time to work off the backlog was over), stopped or failed.
    ended: str
    #: Arguments that the pipeline was built with.
    build_args: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Figures that only runs on Spark have, such as the time until a change runs.
    measures: SparkMeasures = SparkMeasures()
    #: What became of the records.
    records: RecordBalance = RecordBalance()
    #: Errors of operators that failed, by name.
    failed: Mapping[str, str] = field(default_factory=FrozenDict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read it from among all figures of a result."""
        return cls(
            ended=str(data["ended"]),
            build_args=dict(data.get("build_args", data.get("numbers", {}))),
            measures=SparkMeasures.from_json(data),
            records=read_part(RecordBalance, data, "records"),
            failed=dict(data.get("failed", {})),
        )
