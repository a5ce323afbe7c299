"""The parts of a result that all runs have: statistics of replicas, latency and records.

Files of earlier versions lack some fields, so every part has defaults.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any, Self, TypeVar

from penstock.core.frozen_dict import FrozenDict

Part = TypeVar("Part", bound="ResultPart")
#: Types of fields that hold a number, by whether it may be unknown.
_NUMBERS: Mapping[Any, bool] = {
    **{int: False, float: False},
    **{int | None: True, float | None: True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPart:
    """Some figures of a result, which are written by their names."""

    def __post_init__(self) -> None:
        """Raise `TypeError` for a value of a damaged file that is no number."""
        for item in fields(self):
            value = getattr(self, item.name)
            may_be_unknown = _NUMBERS.get(item.type)
            if may_be_unknown is None or isinstance(value, Real):
                continue
            if value is not None or not may_be_unknown:
                raise TypeError(f"{item.name} is no number")

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

    #: Mean over the time of the run.
    avg: float = 0.0
    #: Largest number at any time.
    max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStatistics(ResultPart):
    """Latency from when records were due to when they were through; None if none was."""

    #: Mean over all records, in seconds.
    avg: float | None = None
    #: Median.
    p50: float | None = None
    #: 95th percentile.
    p95: float | None = None
    #: 99th percentile.
    p99: float | None = None
    #: Longest latency of a record.
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

    #: The objective; None if the run has none.
    objective_s: float | None = None
    #: Share of the records above it, 0 to 1.
    violated_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorScore(ResultPart):
    """Replicas and rescales of one operator."""

    replicas: CountStatistics = CountStatistics()
    rescales: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(replicas=read_part(CountStatistics, data, "replicas"), rescales=data["rescales"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScores(ResultPart):
    """The figures that the ticks of any run give."""

    #: Replicas of all operators together.
    replicas: CountStatistics
    #: Latency of records.
    latency_s: LatencyStatistics = LatencyStatistics()
    #: Age of records when sources took them.
    age_s: AgeStatistics = AgeStatistics()
    #: Changes of an operator's replicas.
    rescales: int = 0
    #: Records that the workload offered.
    offered_records: int = 0
    #: Records that left the last operators.
    processed_records: int = 0
    #: Records that queues or timeouts dropped.
    dropped_records: int = 0
    #: Records that wait at the end.
    backlog_records: int = 0
    #: Rows behind the watermark, by operator.
    late_records: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Mean over ticks of |offered - processed| / offered.
    throughput_degradation: float = 0.0
    #: The latency objective and how often it was missed.
    slo: ObjectiveScore = ObjectiveScore()
    #: The cost: replicas times hours.
    replica_hours: float = 0.0
    #: Executors; None where replicas do not run in executors.
    executors: CountStatistics | None = None
    #: Executors times hours; None likewise.
    executor_hours: float | None = None
    #: Seconds for which changes of replicas stopped operators.
    pause_s: float = 0.0
    #: Replicas and changes by operator.
    operators: Mapping[str, OperatorScore] = field(default_factory=FrozenDict)
    #: Ticks at which the policy failed; then the run says little about it.
    unanswered_ticks: int = 0

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries; what few runs have is left out of the others."""
        data = {item.name: to_plain(getattr(self, item.name)) for item in fields(self)}
        for name in ("late_records", "unanswered_ticks"):
            if not data[name]:
                del data[name]
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, in this or an earlier version."""
        parts: dict[str, Any] = {
            "replicas": read_part(CountStatistics, data, "replicas"),
            "latency_s": read_part(LatencyStatistics, data, "latency_s"),
            "age_s": read_part(AgeStatistics, data, "age_s"),
            "slo": read_part(ObjectiveScore, data, "slo"),
            "executors": read_part(CountStatistics, data, "executors")
            if "executors" in data
            else None,
            "operators": read_parts(OperatorScore, data, "operators"),
        }
        names = [item.name for item in fields(cls) if item.name in data]
        return cls(**{name: data[name] for name in names} | parts)


def read_part(cls: type[Part], data: Mapping[str, Any], name: str) -> Part:
    """Read a part; its defaults if the data lacks it."""
    return cls.from_json(data[name]) if name in data else cls()


def read_parts(cls: type[Part], data: Mapping[str, Any], name: str) -> dict[str, Part]:
    """Read parts by name; none if the data lacks them."""
    return {key: cls.from_json(each) for key, each in data.get(name, {}).items()}


def to_plain(value: Any) -> Any:
    """Write parts, and tables of parts, as plain dictionaries."""
    if isinstance(value, ResultPart):
        return value.to_json()
    return (
        {key: to_plain(each) for key, each in value.items()}
        if isinstance(value, Mapping)
        else value
    )
