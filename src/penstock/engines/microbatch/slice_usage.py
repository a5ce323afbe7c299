"""What the slices of an operator used over some time: processor, bytes in and out, state. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUsage:
    """One slice: cores that it used, bytes/s of its rows, bytes of its state."""

    cpu: float = 0.0
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    state_bytes: int = 0


def measure_slices(tasks: Iterable[TaskRecord], seconds: float) -> dict[int, SliceUsage]:
    """Return the usage of each slice over so many seconds; records without probes have none."""
    cpu_s: dict[int, float] = {}
    bytes_in: dict[int, int] = {}
    bytes_out: dict[int, int] = {}
    state: dict[int, int] = {}
    for task in tasks:
        probes = (task.slice_cpu_s, task.slice_bytes_in, task.slice_bytes_out)
        for number, used, taken, given, size in zip(
            task.slices if task.slice_cpu_s else (), *probes, task.slice_state_bytes, strict=True
        ):
            cpu_s[number] = cpu_s.get(number, 0.0) + used
            bytes_in[number] = bytes_in.get(number, 0) + taken
            bytes_out[number] = bytes_out.get(number, 0) + given
            state[number] = size  # the newest counts
    return {
        number: SliceUsage(
            cpu=cpu_s[number] / seconds,
            bytes_in_per_s=bytes_in[number] / seconds,
            bytes_out_per_s=bytes_out[number] / seconds,
            state_bytes=state[number],
        )
        for number in sorted(cpu_s)
    }


def format_slices(usage: Mapping[int, SliceUsage], slices: int) -> dict[str, object]:
    """Return figures for people and hosts, one for each slice; empty without probes."""
    if not usage:
        return {}
    known = [usage.get(number, SliceUsage()) for number in range(slices)]
    return {
        "slice_cpu": tuple(round(each.cpu, 5) for each in known),
        "slice_bytes_in": tuple(round(each.bytes_in_per_s) for each in known),
        "slice_bytes_out": tuple(round(each.bytes_out_per_s) for each in known),
        "slice_state_bytes": tuple(each.state_bytes for each in known),
    }


def read_state_bytes(records: Sequence[BatchRecord]) -> dict[int, int]:
    """Return the size of each slice's state in the newest of some records."""
    tasks = records[-1].tasks if records else ()
    return {n: usage.state_bytes for n, usage in measure_slices(tasks, 1.0).items()}
