"""Compares a run on Spark with several simulations of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.control.loop import Tick
from penstock.engines.simulator.profile import Profile
from penstock.runs.result_parts import RunScores
from penstock.runs.scores import score
from penstock.twin.errors import TwinCell, compare_figures
from penstock.twin.twin import RecordedRun, read_recorded_run, simulate_twin


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinComparison:
    """A run, the errors of its twins, and the ticks of the first twin."""

    run: RecordedRun
    cell: TwinCell
    twin_ticks: Sequence[Tick]


def compare_with_twins(
    directory: Path,
    profile: Profile,
    seeds: int = 5,
    on_twin: Callable[[str, int, int], None] | None = None,
) -> TwinComparison:
    """Simulate the twins of a run; `on_twin` gets its name, the twins that are done, and all."""
    run = read_recorded_run(directory)
    first: tuple[Tick, ...] = ()
    twins: list[RunScores] = []
    for seed in range(seeds):
        ticks = tuple(simulate_twin(run, profile, seed))
        first = first or ticks
        twins.append(score(ticks, None))
        if on_twin is not None:
            on_twin(directory.name, seed + 1, seeds)
    cell = _cell(run, score(run.ticks, None), twins, profile)
    return TwinComparison(run=run, cell=cell, twin_ticks=first)


def _cell(
    run: RecordedRun, real: RunScores, twins: Sequence[RunScores], profile: Profile
) -> TwinCell:
    return TwinCell(
        name=run.directory.name,
        query=run.prepared.pipeline.name,
        workload=run.spec.workload or "",
        policy=run.header["policy"],
        build_args=run.spec.build_args,
        speed_up=run.spec.speed_up,
        rate_scale=run.spec.rate_scale,
        is_fitted=run.directory.resolve().name in profile.runs,
        figures=compare_figures(real, twins),
        operators={
            name: (
                operator.replicas.avg,
                [twin.operators[name].replicas.avg for twin in twins],
            )
            for name, operator in real.operators.items()
        },
    )
