"""What a calibration reads of a run: its batches, its ticks, and how operators hang together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.topology import Topology
from penstock.engines.port import Batch
from penstock.errors import InputError
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.journal_header import SPARK, engine_kind
from penstock.runs.run_directory import RunDirectory, read_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

#: Batches of the first seconds are those of a JVM that still compiles.
START_UP_S = 5.0
#: After so many seconds it has compiled what it meets.
WARM_S = 40.0
DESCRIPTION = "pipeline.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOperator:
    """One operator as it was declared."""

    name: str
    upstream: tuple[str, ...] = ()
    kind: str = "batch"
    slices: int = 0
    chunk_rows: int | None = None
    replicas: int = 1
    min_replicas: int = 1
    max_replicas: int | None = None
    queue_limit: int | None = None
    share: float = 1.0
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """One run."""

    name: str
    pipeline: str
    numbers: Mapping[str, Any]
    batch_s: float
    objective_s: float | None
    parts: Mapping[str, DeclaredOperator]
    #: By operator, oldest first: all, and those with rows that are not of the beginning.
    all_batches: Mapping[str, Sequence[Batch]]
    batches: Mapping[str, Sequence[Batch]]
    #: By operator, for each of these batches the other operators that were in one.
    others: Mapping[str, Sequence[int]] = field(default_factory=FrozenDict)
    #: By operator, the second of its first row out, if one came.
    first_out_s: Mapping[str, float] = field(default_factory=FrozenDict)
    #: Batches of its beginning, those of the first seconds too, with the others that were in one.
    early: Sequence[tuple[Batch, int]] = ()
    ticks: Sequence[Tick] = ()


def read_calibration_run(directory: Path) -> CalibrationRun:
    """Read a run; `InputError` if its journal does not tell of single batches."""
    run = read_run(directory)
    found: dict[str, list[Batch]] = {}
    for tick in run.journal.ticks:
        for name, some in tick.status.batches.items():
            found.setdefault(name, []).extend(some)
    if not any(found.values()):
        hint = "only runs on Spark, or of a profile of resolution batches, have some"
        raise InputError("", "its journal tells of no batches", hint, str(directory))
    is_real = engine_kind(run.journal.run) == SPARK
    parts = read_operators(directory) if is_real else _simulated(run)
    spec = run.spec
    late = {n: [b for b in some if b.planned_s > START_UP_S] for n, some in found.items()}
    return CalibrationRun(
        name=directory.name,
        pipeline=_declared_name(directory, spec) if is_real else Path(spec["query"]).stem,
        numbers=spec.get("numbers", {}),
        batch_s=spec.get("batch_s", 1.0),
        objective_s=run.journal.run.get("objective_s"),
        parts=parts,
        all_batches=found,
        batches={name: [b for b in some if b.rows_in] for name, some in late.items()},
        others={
            name: [_others(found, name, b.planned_s) for b in some if b.rows_in]
            for name, some in late.items()
        },
        first_out_s={n: s for n, some in found.items() if (s := _first_out_s(some)) is not None},
        early=[
            (b, _others(found, name, b.planned_s))
            for name, some in found.items()
            for b in some
            if b.rows_in and b.planned_s <= WARM_S
        ],
        ticks=run.journal.ticks,
    )


def _first_out_s(batches: Sequence[Batch]) -> float | None:
    return next((b.committed_s for b in batches if b.rows_out), None)


def _others(batches: Mapping[str, Sequence[Batch]], name: str, at: float) -> int:
    return sum(
        any(b.planned_s <= at < b.committed_s for b in some)
        for other, some in batches.items()
        if other != name
    )


def _declared_name(directory: Path, spec: Mapping[str, Any]) -> str:
    """Return the pipeline's own name: a run of a user's file is specified by the file's path."""
    return str(_read_description(directory).get("name", spec["pipeline"]))


def _read_description(directory: Path) -> Mapping[str, Any]:
    path = directory / DESCRIPTION
    try:
        description: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in ("operators", "produces"):
            description[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("", f"cannot be read: {error}", where=str(path)) from None
    return description


def read_operators(directory: Path) -> dict[str, DeclaredOperator]:
    """Read what the run wrote down of its pipeline."""
    description = _read_description(directory)
    operators: Mapping[str, Any] = description["operators"]
    fed: Mapping[str, Any] = description["produces"]
    writers = {op["writes"]: name for name, op in operators.items() if op["writes"]}
    return {
        name: DeclaredOperator(
            name=name,
            upstream=tuple(writers[topic] for topic in op["reads"] if topic in writers),
            kind=op["kind"],
            slices=(op.get("slicing") or {}).get("slices", 0),
            chunk_rows=op["options"]["chunk_rows"],
            replicas=op["options"]["replicas"],
            min_replicas=op["options"]["min_replicas"],
            max_replicas=op["options"]["max_replicas"],
            queue_limit=op["options"]["queue_limit"],
            share=sum(fed[topic].get("share", 1.0) for topic in op["reads"] if topic in fed) or 1.0,
            topic=next((topic for topic in op["reads"] if topic in fed), ""),
        )
        for name, op in operators.items()
        if find_kind(op["kind"]).scales
    }


def _simulated(run: RunDirectory) -> dict[str, DeclaredOperator]:
    """Prepare a simulated run again for its pipeline."""
    pipeline = prepare_simulation(SimulationSpec.from_json(run.spec)).pipeline
    return {
        op.name: DeclaredOperator(
            name=op.name,
            upstream=op.upstream,
            kind="native" if op.native else "sliced" if op.costs and op.costs.slices else "batch",
            slices=op.costs.slices if op.costs else 0,
            chunk_rows=op.costs.chunk_rows if op.costs else None,
            replicas=op.replicas,
            min_replicas=op.min_replicas,
            max_replicas=op.max_replicas,
            queue_limit=op.queue_limit,
            share=op.share,
            topic=op.costs.topic if op.costs else "",
        )
        for op in pipeline.operators
    }


def build_topology(parts: Mapping[str, DeclaredOperator]) -> Topology:
    """Return how operators hang together."""
    return Topology.of({name: part.upstream for name, part in parts.items()})
