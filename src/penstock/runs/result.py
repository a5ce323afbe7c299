"""The result of a run, simulated or on Spark, and its form in result.json.

Files of earlier versions lack some fields, so every part has defaults.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, TypeVar

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError

Part = TypeVar("Part", bound="ResultPart")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPart:
    """Some figures of a result, which are written by their names."""

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        return cls(**{item.name: data[item.name] for item in fields(cls) if item.name in data})


@dataclass(frozen=True, slots=True, kw_only=True)
class CountStatistics(ResultPart):
    """Replicas, or executors, over a run."""

    avg: float = 0.0
    max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStatistics(ResultPart):
    """Latency from when records were due to when they were through; None if none was."""

    avg: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeStatistics(ResultPart):
    """Age of records when sources took them, one sample a tick: the thesis' latency."""

    avg: float | None = None
    p50: float | None = None
    p95: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveScore(ResultPart):
    """The latency objective, and the share of records above it."""

    objective_s: float | None = None
    violated_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorScore(ResultPart):
    """Replicas and rescales of one operator."""

    replicas: CountStatistics = CountStatistics()
    rescales: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(replicas=_part(CountStatistics, data, "replicas"), rescales=data["rescales"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScores(ResultPart):
    """The figures that the ticks of any run give."""

    replicas: CountStatistics
    latency_s: LatencyStatistics = LatencyStatistics()
    age_s: AgeStatistics = AgeStatistics()
    rescales: int = 0
    offered_records: int = 0
    processed_records: int = 0
    dropped_records: int = 0
    backlog_records: int = 0
    late_records: Mapping[str, int] = field(default_factory=FrozenDict)
    throughput_degradation: float = 0.0
    slo: ObjectiveScore = ObjectiveScore()
    replica_hours: float = 0.0
    #: Only where replicas run in executors.
    executors: CountStatistics | None = None
    executor_hours: float | None = None
    pause_s: float = 0.0
    operators: Mapping[str, OperatorScore] = field(default_factory=FrozenDict)
    #: Ticks at which the policy failed; then the run says little about it.
    unanswered_ticks: int = 0

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries; what few runs have is left out of the others."""
        data = {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        for name in ("late_records", "unanswered_ticks"):
            if not data[name]:
                del data[name]
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        parts: dict[str, Any] = {
            "replicas": _part(CountStatistics, data, "replicas"),
            "latency_s": _part(LatencyStatistics, data, "latency_s"),
            "age_s": _part(AgeStatistics, data, "age_s"),
            "slo": _part(ObjectiveScore, data, "slo"),
            "executors": _part(CountStatistics, data, "executors") if "executors" in data else None,
            "operators": _parts(OperatorScore, data, "operators"),
        }
        names = [item.name for item in fields(cls) if item.name in data]
        return cls(**{name: data[name] for name in names} | parts)


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
        times = {name: _part(Spread, data, name) for name in ("bought_s", "returned_s")}
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
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        return cls(
            seconds=data.get("seconds", 0.0),
            static_peak=_part(StaticPeak, data, "static_peak"),
            floor_s=data.get("floor_s"),
            change_s=_part(Spread, data, "change_s"),
            change_batches=_part(Spread, data, "change_batches"),
            executor_changes=_part(ExecutorChanges, data, "executor_changes"),
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

    offered: int = 0
    #: Records that are in every last topic, and those that are not; None if they have no number.
    complete: int | None = None
    missing: int | None = None
    doubled: int = 0
    #: Rows with numbers that were never offered.
    strange: int = 0
    put_aside: int = 0
    #: Rows of each last topic.
    topics: Mapping[str, int] = field(default_factory=FrozenDict)
    dropped: int = 0
    lost: int = 0
    drained: bool = False
    waiting: int = 0
    operators: Mapping[str, OperatorAccount] = field(default_factory=FrozenDict)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        names = [item.name for item in fields(cls) if item.name in data]
        counts = {name: data[name] for name in names}
        return cls(**counts | {"operators": _parts(OperatorAccount, data, "operators")})


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkResult:
    """The part of a result that only runs on Spark have."""

    #: finished, cut (the time to work off what waits was over), stopped or failed.
    ended: str
    #: What the pipeline was built with.
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    measures: SparkMeasures = SparkMeasures()
    records: RecordBalance = RecordBalance()
    #: Errors of operators that failed, by name.
    failed: Mapping[str, str] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HindsightCost(ResultPart):
    """The fewest replica-hours that would have done; no ratio if nothing meets the objective."""

    replica_hours: float
    ratio: float | None
    feasible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of one run."""

    #: The spec as it was written.
    spec: Mapping[str, Any]
    #: None if the run ended before its first tick.
    scores: RunScores | None = None
    rescales_possible: int = 0
    #: None for a simulated run.
    spark: SparkResult | None = None
    hindsight: HindsightCost | None = None

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries, all figures side by side."""
        spark, scores = self.spark, self.scores.to_json() if self.scores is not None else {}
        if spark is None:
            data = {"spec": dict(self.spec), **scores, "rescales_possible": self.rescales_possible}
        else:
            measures = spark.measures.to_json()
            data = {
                "spec": dict(self.spec),
                "numbers": dict(spark.numbers),
                "ended": spark.ended,
                "seconds": measures.pop("seconds"),
                **scores,
                **measures,
                "rescales_possible": self.rescales_possible,
                "records": spark.records.to_json(),
                "failed": dict(spark.failed),
            }
        return data | ({"hindsight": self.hindsight.to_json()} if self.hindsight else {})

    @classmethod
    def from_json(cls, data: Any) -> "RunResult":
        """Read what `to_json` wrote, now or in an earlier version; `InputError` if damaged."""
        if not isinstance(data, Mapping):
            raise InputError("", "is not a result: it must be an object")
        try:
            return cls._read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("", f"is not a result: {error}") from None

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> "RunResult":
        hindsight = data.get("hindsight")
        return cls(
            spec=dict(data.get("spec", {})),
            scores=RunScores.from_json(data) if "replicas" in data else None,
            rescales_possible=data.get("rescales_possible", 0),
            spark=_read_spark(data) if "ended" in data else None,
            hindsight=HindsightCost.from_json(hindsight) if hindsight else None,
        )


def _read_spark(data: Mapping[str, Any]) -> SparkResult:
    return SparkResult(
        ended=str(data["ended"]),
        numbers=dict(data.get("numbers", {})),
        measures=SparkMeasures.from_json(data),
        records=_part(RecordBalance, data, "records"),
        failed=dict(data.get("failed", {})),
    )


def _part(cls: type[Part], data: Mapping[str, Any], name: str) -> Part:
    return cls.from_json(data[name]) if name in data else cls()


def _parts(cls: type[Part], data: Mapping[str, Any], name: str) -> dict[str, Part]:
    return {key: cls.from_json(each) for key, each in data.get(name, {}).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, ResultPart):
        return value.to_json()
    return (
        {key: _plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value
    )
