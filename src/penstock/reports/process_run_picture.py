"""The picture of a process run: load, instances and messages over time."""

from collections.abc import Callable

from penstock.decentralized.processes.run_monitor import RunSample
from penstock.decentralized.processes.run_result import ProcessRunResult
from penstock.reports.canvas import Target
from penstock.reports.pictures import Panel, PictureLine, draw_over_time


def draw_process_run(result: ProcessRunResult, target: Target) -> None:
    """Draw a run into a file or a stream."""
    samples, spec = result.samples, result.spec

    def line(label: str, value: Callable[[RunSample], float]) -> PictureLine:
        seconds = [sample.at_s for sample in samples]
        return PictureLine(label=label, minutes=seconds, values=[value(s) for s in samples])

    def instances(place: int) -> Callable[[RunSample], float]:
        return lambda sample: sample.operators[place].instances

    panels = [
        Panel(
            title="load that the source sends",
            unit="records/s",
            lines=(line("offered", lambda sample: sample.offered),),
        ),
        Panel(
            title="instances, each a process",
            unit="instances",
            lines=tuple(line(name, instances(i)) for i, name in enumerate(spec.names[1:-1])),
            steps=True,
        ),
        Panel(
            title="instances of all operators, and as many as the load needs",
            unit="instances",
            lines=(
                line("all", lambda sample: sum(op.instances for op in sample.operators)),
                line("ideal", lambda sample: sum(op.ideal for op in sample.operators)),
            ),
            steps=True,
        ),
        Panel(
            title="messages of the protocol",
            unit="messages/s",
            lines=(line("messages", lambda sample: sample.messages),),
            steps=True,
        ),
    ]
    low, high = spec.delay_ms
    delays = f"delays of {low:g} to {high:g} ms"
    title = f"{len(result.actions)} scaling actions without a controller, {delays}"
    draw_over_time(panels, target, title, unit="seconds")
