"""Operators of a pipeline by what Spark does with them: own state, slices, order of start."""

from penstock.core.topology import Topology
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.pipelines.pipeline import Pipeline


def find_native(pipeline: Pipeline) -> list[str]:
    """Return the operators with Spark's own state."""
    return [
        name
        for name, operator in pipeline.operators.items()
        if find_spark_kind(operator.kind).has_spark_state
    ]


def find_sliced(pipeline: Pipeline) -> dict[str, int]:
    """Return the number of slices of each operator that has them."""
    return {
        name: slices
        for name, operator in pipeline.operators.items()
        if (slices := find_spark_kind(operator.kind).slices(operator))
    }


def sort_operators(pipeline: Pipeline, topology: Topology) -> list[str]:
    """Return the operators in the order in which records pass them, ingests first."""
    others = [op for op in pipeline.operators.values() if not op.scales]
    return [
        *(operator.name for operator in others if not operator.reads),
        *topology.order,
        *(operator.name for operator in others if operator.reads),
    ]
