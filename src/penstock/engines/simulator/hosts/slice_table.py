"""The slices of a simulated pipeline: what one record costs each, and how long a move takes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Rescaling
from penstock.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MB_PER_GB = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTable:
    """One row per slice, operator after operator in the order of the pipeline."""

    names: tuple[str, ...]
    #: The rows of each operator, in the order in which records pass them.
    stages: tuple[slice, ...]
    #: Seconds of a whole host that one record costs a slice.
    cost_s: FloatArray
    #: Share of the operator's records that a slice gets: all, or an even part.
    share: FloatArray
    state_mb: FloatArray
    #: Mean seconds of a move, and their coefficient of variation.
    move_s: FloatArray
    move_cv: FloatArray

    @property
    def stage_of(self) -> IntArray:
        """The number of each slice's operator."""
        sizes = [rows.stop - rows.start for rows in self.stages]
        return np.repeat(np.arange(len(sizes)), sizes)


def build_slice_table(pipeline: SimulatedPipeline, rescaling: Rescaling) -> SliceTable:
    """Build the table; `InputError` unless the pipeline is one chain of operators with slices."""
    operators = _sort_chain(pipeline)
    stages, first = [], 0
    for operator in operators:
        stages.append(slice(first, first + operator.slices))
        first += operator.slices
    return SliceTable(
        names=tuple(
            f"{operator.name}:{number}"
            for operator in operators
            for number in range(1, operator.slices + 1)
        ),
        stages=tuple(stages),
        cost_s=_repeat(operators, (_cost_s(operator) for operator in operators)),
        share=_repeat(operators, (_share(operator) for operator in operators)),
        state_mb=_repeat(operators, (op.state_mb / op.slices for op in operators)),
        move_s=_repeat(operators, (_move_s(operator, rescaling) for operator in operators)),
        move_cv=_repeat(operators, (operator.move_cv for operator in operators)),
    )


def _sort_chain(pipeline: SimulatedPipeline) -> list[SimulatedOperator]:
    by_name = {operator.name: operator for operator in pipeline.operators}
    operators = [by_name[name] for name in pipeline.topology.order]
    for before, operator in zip([None, *operators], operators, strict=False):
        if not operator.slices:
            hint = "--query streamhub has slices; other profiles run pipelines without them"
            raise InputError("query", f"{pipeline.name}: {operator.name} has no slices", hint)
        if operator.upstream != ((before.name,) if before else ()):
            problem = f"{pipeline.name}: at resolution hosts, a pipeline is one chain of operators"
            raise InputError("query", problem)
    return operators


def _repeat(operators: Iterable[SimulatedOperator], values: Iterable[float]) -> FloatArray:
    return np.repeat(np.array(list(values), float), [operator.slices for operator in operators])


def _cost_s(operator: SimulatedOperator) -> float:
    # a record that goes to all slices costs each of them its part
    return 1 / operator.capacity_rate / (operator.slices if operator.to_all else 1)


def _share(operator: SimulatedOperator) -> float:
    return 1.0 if operator.to_all else 1 / operator.slices


def _move_s(operator: SimulatedOperator, rescaling: Rescaling) -> float:
    base_s = rescaling.pause_s if operator.move_s is None else operator.move_s
    return base_s + operator.state_mb / operator.slices / MB_PER_GB * rescaling.pause_s_per_gb
