"""A simulation as ticks of a run directory; one step counts as one second."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from penstock.control.loop import LoopSchedule
from penstock.decentralized.run_record import (
    SIMULATED,
    OperatorInstances,
    PipelineRecords,
    RunRecord,
    make_spec,
    record_run,
)
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.timeline import ScalingTimeline

#: Names of a step and an operator.
_Cell = tuple[int, int]


@contextmanager
def record_simulation(directory: Path, setup: DecentralizedSetup) -> Iterator[RunRecord]:
    """Make the run directory of a simulation."""
    default = DecentralizedSetup()
    given = {item.name: getattr(setup, item.name) for item in fields(setup)}
    options = {name: value for name, value in given.items() if value != getattr(default, name)}
    pipeline = f"{setup.operators} operators x {setup.instances}"
    spec = make_spec(SIMULATED, pipeline, setup.load, setup.seed, options)
    schedule = LoopSchedule(duration_s=float(setup.steps), interval_s=1.0)
    with record_run(directory, spec, setup.decision, schedule, setup.capacity) as record:
        yield record


def write_timeline(record: RunRecord, timeline: ScalingTimeline) -> None:
    """Write one tick per step."""
    states = _InstanceStates(timeline)
    offered = processed = 0
    last = timeline.setup.steps - 1
    for step in range(timeline.setup.steps):
        offered += sum(series.load[step] for series in timeline.operators)
        processed += sum(series.processed[step] for series in timeline.operators)
        records = PipelineRecords(
            offered=offered,
            processed=processed,
            # lost records are known at the end only
            lost=timeline.records.lost if step == last else 0,
            waiting=sum(series.waiting[step] for series in timeline.operators),
        )
        operators = [states.at(operator, step) for operator in range(len(timeline.operators))]
        record.write(step + 1.0, operators, records, is_over=step == last)


class _InstanceStates:
    """The states of instances in every step, from the scaling actions."""

    def __init__(self, timeline: ScalingTimeline) -> None:
        self._timeline = timeline
        self._copies: Counter[_Cell] = Counter()
        self._stops: Counter[_Cell] = Counter()
        self._starting: Counter[_Cell] = Counter()
        self._stopping: Counter[_Cell] = Counter()
        steps = timeline.setup.steps
        for action in timeline.actions:
            end = steps if action.end_step is None else action.end_step
            pending = self._starting if action.copies else self._stopping
            for step in range(action.step, end):
                pending[action.operator, step] += action.copies or 1
            decided = self._copies if action.copies else self._stops
            decided[action.operator, action.step] += action.copies or 1

    def at(self, operator: int, step: int) -> OperatorInstances:
        """Return the instances of an operator in a step."""
        timeline, cell = self._timeline, (operator, step)
        series, capacity = timeline.operators[operator], timeline.setup.capacity
        running, stopping = series.instances[step], self._stopping[cell]
        return OperatorInstances(
            name=f"operator {operator + 1}",
            active=max(0, running - stopping),
            starting=self._starting[cell],
            stopping=min(running, stopping),
            load=series.load[step],
            waiting=series.waiting[step],
            voters=timeline.deciders[cell],
            copies=self._copies[cell],
            stops=self._stops[cell],
            messages=series.messages[step],
            busy=min(1.0, series.processed[step] / (max(1, running) * capacity)),
        )
