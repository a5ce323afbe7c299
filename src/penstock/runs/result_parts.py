"""The parts of a result that all runs have: statistics of replicas, latency and records.

Files of earlier versions lack some fields, so every part has defaults.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, TypeVar

from penstock.core.frozen_dict import FrozenDict

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
        return cls(replicas=read_part(CountStatistics, data, "replicas"), rescales=data["rescales"])


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
