"""Small pipelines for the tests of the record-level simulator."""

from collections.abc import Iterable

import numpy as np

from penstock.engines.simulator.records.model import (
    RecordOperator,
    RecordPipeline,
    RecordRules,
)
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.engines.simulator.records.totals import ServedRecord

SECOND = ServiceTime(distribution="deterministic", mean_s=1.0)


def one(**operator: object) -> RecordOperator:
    """An operator called "map" that needs a second a record unless told otherwise."""
    return RecordOperator(**{"name": "map", "service": SECOND, **operator})  # type: ignore[arg-type]


def simulator(
    operator: RecordOperator, times: Iterable[float], **rules: float
) -> tuple[RecordSimulator, list[ServedRecord]]:
    trace: list[ServedRecord] = []
    pipeline = RecordPipeline(operators=(operator,), rules=RecordRules(**rules))
    return RecordSimulator(pipeline, {operator.name: times}, 7, trace), trace


def poisson(rate: float, records: int, seed: int = 3) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, records))
