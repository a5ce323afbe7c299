"""A run of processes as ticks of a run directory, one tick per sample, while it runs."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.control.loop import LoopSchedule
from penstock.decentralized.processes.run_monitor import RunSample
from penstock.decentralized.processes.run_result import ProcessRunResult
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.run_record import (
    PROCESSES,
    OperatorInstances,
    PipelineRecords,
    RunRecord,
    make_spec,
    record_run,
)


@contextmanager
def record_processes(directory: Path, spec: ProcessRunSpec) -> Iterator[RunRecord]:
    """Make the run directory of a run of processes."""
    default = ProcessRunSpec()
    options: dict[str, Any] = {
        item.name.removesuffix("_s"): getattr(spec, item.name)
        for item in fields(spec)
        if item.name != "params" and getattr(spec, item.name) != getattr(default, item.name)
    }
    if "delay_ms" in options:
        options["delay_ms"] = ":".join(f"{delay:g}" for delay in spec.delay_ms)
    pipeline = " > ".join(spec.names[1:-1])
    run_spec = make_spec(PROCESSES, pipeline, spec.load, spec.seed, options)
    # the load lasts until enough actions have ended
    schedule = LoopSchedule(duration_s=math.inf, interval_s=spec.interval_s)
    with record_run(directory, run_spec, spec.params, schedule, spec.capacity) as record:
        yield record


def write_sample(record: RunRecord, sample: RunSample) -> None:
    """Write one sample; an action counts in the interval in which it ended."""
    operators = [
        OperatorInstances(
            name=operator.name,
            active=operator.active,
            starting=operator.starting,
            stopping=operator.stopping,
            load=operator.load,
            waiting=operator.queue,
            voters=operator.deciders,
            copies=operator.copies,
            stops=operator.stops,
            messages=operator.messages,
        )
        for operator in sample.operators
    ]
    records = PipelineRecords(
        offered=sample.sent, processed=sample.delivered, waiting=sample.sent - sample.delivered
    )
    record.write(sample.at_s, operators, records)


def write_end(record: RunRecord, result: ProcessRunResult) -> None:
    """Write what became of the records after the last sample: nothing scales any more."""
    operators = [
        OperatorInstances(
            name=operator.name,
            active=operator.active,
            starting=operator.starting,
            stopping=operator.stopping,
            load=0.0,
            waiting=0,
            voters=0,
            copies=0,
            stops=0,
            messages=0,
        )
        for operator in result.samples[-1].operators
    ]
    *_, sink = result.accounts
    records = PipelineRecords(
        offered=result.sent, processed=sink.processed, lost=len(sink.lost), waiting=0
    )
    record.write(round(result.seconds, 3), operators, records, is_over=True)
