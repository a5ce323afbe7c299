"""The result of a run, simulated or on Spark, and its form in result.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError
from penstock.runs.result_parts import (
    CountStatistics,
    LatencyStatistics,
    ObjectiveScore,
    ResultPart,
    RunScores,
)
from penstock.runs.spark_result import SparkResult
from penstock.runs.spec_fields import with_current_names


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
    #: Times at which the policy could have changed replicas.
    rescales_possible: int = 0
    #: How it ended, and what became of its records; None for a simulated run.
    spark: SparkResult | None = None
    #: The cheapest run in hindsight, if it was computed.
    hindsight: HindsightCost | None = None

    @property
    def replicas(self) -> CountStatistics:
        """Replicas of all operators together over the run; zeros if nothing was measured."""
        return self.scores.replicas if self.scores is not None else CountStatistics()

    @property
    def latency_s(self) -> LatencyStatistics:
        """Latency from when records were due to when they were through."""
        return self.scores.latency_s if self.scores is not None else LatencyStatistics()

    @property
    def objective(self) -> ObjectiveScore:
        """The latency objective, and the share of records above it."""
        return self.scores.slo if self.scores is not None else ObjectiveScore()

    @property
    def replica_hours(self) -> float:
        """The cost of the run."""
        return self.scores.replica_hours if self.scores is not None else 0.0

    @property
    def has_failed(self) -> bool:
        """Whether a run on Spark failed or lost records, however it ended."""
        spark = self.spark
        return spark is not None and (spark.ended == "failed" or spark.records.lost > 0)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries, all figures side by side."""
        spark, scores = self.spark, self.scores.to_json() if self.scores is not None else {}
        if spark is None:
            data = {"spec": dict(self.spec), **scores, "rescales_possible": self.rescales_possible}
        else:
            measures = spark.measures.to_json()
            data = {
                "spec": dict(self.spec),
                "build_args": dict(spark.build_args),
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
            spec=with_current_names(data.get("spec", {})),
            scores=RunScores.from_json(data) if "replicas" in data else None,
            rescales_possible=data.get("rescales_possible", 0),
            spark=SparkResult.from_json(data) if "ended" in data else None,
            hindsight=HindsightCost.from_json(hindsight) if hindsight else None,
        )
