"""Implements `penstock nexmark generate`: writes a part of the stream to a Parquet file."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, nearest
from penstock.files.atomic import TEMPORARY
from penstock.nexmark.event_order import KINDS, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import events, rows
from penstock.nexmark.times import RATE, Clock, FixedRate, WorkloadClock
from penstock.workloads.registry import make_workload

#: Arrow's module for Parquet has no types.
_ParquetWriter: Any = pyarrow.parquet.ParquetWriter
#: Events generated and written at a time.
PART = 1 << 18
#: Nearly a terabyte of bids; more is probably a typing error.
MAX_EVENTS = 10**10


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateSpec:
    """The options of `generate`."""

    events: int
    #: The name of a kind, or None for all.
    kind: str | None
    hot: bool
    #: Events per second, or the workload that event times follow; one of them, or none.
    rate: float | None
    workload: str | None
    out: str


def generate(spec: GenerateSpec, show: Callable[[WorkProgress], None]) -> dict[str, Any]:
    """Write the file, and return its figures."""
    if not 1 <= spec.events <= MAX_EVENTS:
        raise InputError("--events", f"must be from 1 to {MAX_EVENTS:,}, got {spec.events:,}")
    kind, setting, path = (
        _kind(spec.kind),
        StreamSettings(hot=spec.hot, clock=_clock(spec)),
        _path(spec),
    )
    began_s = time.monotonic()
    with _temporary_file(path) as stream:
        _write(stream, kind, spec.events, setting, show)
    kinds = KINDS if kind is None else {kind.name: kind}
    return {
        "file": str(path),
        "events": spec.events,
        "rows": {name: each.rows_within(0, spec.events)[1] for name, each in kinds.items()},
        "event_time_s": int(setting.clock.after_us(np.array([spec.events]))[0]) / 1e6,
        "bytes": path.stat().st_size,
        "seconds": time.monotonic() - began_s,
    }


def _write(
    stream: BinaryIO,
    kind: EventKind | None,
    count: int,
    setting: StreamSettings,
    show: Callable[[WorkProgress], None],
) -> None:
    def part(first: int, end: int) -> pa.Table:
        if kind is None:
            return events(first, end, setting)
        return rows(kind, *kind.rows_within(first, end), setting)

    show(WorkProgress(total=count, kept=0, done=0))
    with _ParquetWriter(stream, part(0, 0).schema) as writer:
        for first in range(0, count, PART):
            end = min(first + PART, count)
            writer.write_table(part(first, end))
            show(WorkProgress(total=count, kept=0, done=end))


@contextmanager
def _temporary_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when it is complete."""
    place = path.with_name(f".{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with place.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        place.replace(path)
    except OSError as error:
        problem = f"{str(path)!r} cannot be written: {error.strerror or error}"
        raise InputError("--out", problem) from error
    finally:
        place.unlink(missing_ok=True)


def _kind(name: str | None) -> EventKind | None:
    if name is not None and name not in KINDS:
        raise InputError("--kind", f"unknown kind of event {name!r}", nearest(name, KINDS))
    return None if name is None else KINDS[name]


def _clock(spec: GenerateSpec) -> Clock:
    if spec.workload is None:
        return FixedRate(RATE if spec.rate is None else spec.rate)
    if spec.rate is not None:
        raise InputError("--rate", "cannot be combined with --workload", "leave one of them out")
    return WorkloadClock(make_workload(spec.workload))


def _path(spec: GenerateSpec) -> Path:
    path = Path(spec.out)
    if path.suffix != ".parquet":
        raise InputError("--out", f"must end with .parquet, got {spec.out!r}")
    if path.is_dir():
        raise InputError("--out", f"{spec.out!r} is a directory")
    if not path.parent.is_dir():
        raise InputError("--out", f"there is no directory {str(path.parent)!r}")
    return path
