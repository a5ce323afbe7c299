"""The figures of a process run beside those of the simulator under the same load."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from penstock.decentralized.processes.run_result import ProcessRunResult, percentiles
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import summarize
from penstock.files.text import write_text

#: Seeds of the decisions in the simulator, whose means are shown.
SEEDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFigures:
    """What both have: how much was scaled, what it cost, how well it fitted the load."""

    actions: float
    nodes_started: float
    #: Messages of the protocol.
    messages: float
    accuracy_mean: float
    accuracy_p05: float
    accuracy_p95: float
    ideal_throughput: float

    def to_json(self) -> dict[str, float]:
        """Return the figures as JSON."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def figures_of_run(result: ProcessRunResult) -> ScalingFigures:
    """Return the figures of a process run while its load lasted."""
    accuracy = percentiles(result.accuracies)
    samples = [sample for sample in result.samples if sample.is_loaded]
    actions = result.actions[: samples[-1].actions] if samples else ()
    return ScalingFigures(
        actions=len(actions),
        nodes_started=sum(action.copies for action in actions),
        messages=sum(sample.messages for sample in samples),
        accuracy_mean=accuracy["mean"] or 0.0,
        accuracy_p05=accuracy["p05"] or 0.0,
        accuracy_p95=accuracy["p95"] or 0.0,
        ideal_throughput=result.ideal_throughput,
    )


def simulate_load(result: ProcessRunResult) -> ScalingFigures | None:
    """Simulate the load that the source has sent; means over seeds.

    A decision interval is five steps, as in the paper, so that a duplication takes 3/5 of it. The
    simulator needs two operators and two steps; None if the run had fewer. It has neither source
    nor sink, so the first and the last operator have one neighbour less.
    """
    loads, setup = _load_steps(result), DecentralizedSetup()
    if result.spec.operators < 2 or len(loads) < 2:
        return None
    with TemporaryDirectory() as directory:
        path = Path(directory) / "load.csv"
        rows = (f"{step},{load}" for step, load in enumerate(loads))
        write_text(path, "\n".join(["time,rate", *rows, ""]), "load")
        return _mean(
            [_simulate(result, str(path), len(loads), setup.seed + i) for i in range(SEEDS)]
        )


def _load_steps(result: ProcessRunResult) -> list[int]:
    """Return the load of every step, such that the capacity of an instance is the setup's."""
    spec, setup = result.spec, DecentralizedSetup()
    samples = [sample for sample in result.samples if sample.is_loaded]
    steps = round(samples[-1].at_s / spec.interval_s * setup.every) if samples else 0
    scale, loads, place = setup.capacity / spec.capacity, [], 0
    for step in range(steps):
        now_s = step * spec.interval_s / setup.every
        while place < len(samples) - 1 and samples[place].at_s <= now_s:
            place += 1
        loads.append(round(samples[place].offered * scale))
    return loads


def _simulate(result: ProcessRunResult, trace: str, steps: int, seed: int) -> ScalingFigures:
    spec = result.spec
    setup = DecentralizedSetup(
        operators=spec.operators,
        instances=spec.instances,
        steps=steps,
        r=spec.params.r,
        up=spec.params.up,
        down=spec.params.down,
        load="trace",
        trace=trace,
        seed=seed,
    )
    summary: dict[str, Any] = summarize(simulate_setup(setup))
    actions, accuracy = summary["actions"], summary["accuracy"]
    return ScalingFigures(
        actions=actions["duplications"] + actions["deletions"],
        nodes_started=actions["copies"],
        messages=summary["traffic"]["messages"],
        accuracy_mean=accuracy["mean"],
        accuracy_p05=accuracy["p05"],
        accuracy_p95=accuracy["p95"],
        ideal_throughput=summary["ideal_throughput"],
    )


def _mean(figures: Sequence[ScalingFigures]) -> ScalingFigures:
    names = [item.name for item in fields(ScalingFigures)]
    return ScalingFigures(**{name: mean(getattr(each, name) for each in figures) for name in names})
