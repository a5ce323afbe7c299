"""Reads runs for calibration: their batches, ticks and declared operators."""

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
from penstock.pipelines.chains import join_described
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.journal_header import SPARK, engine_kind
from penstock.runs.run_directory import RunDirectory, read_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

#: Batches of the first seconds are slow, because the JVM still compiles.
START_UP_S = 5.0
#: After this time the JVM has compiled the code of a run.
WARM_S = 40.0
DESCRIPTION = "pipeline.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOperator:
    """One operator as its pipeline declares it."""

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
    """The data of one run that a calibration uses."""

    name: str
    pipeline: str
    build_args: Mapping[str, Any]
    batch_s: float
    objective_s: float | None
    parts: Mapping[str, DeclaredOperator]
    #: By operator, oldest first: all batches, and those with rows after the start-up.
    all_batches: Mapping[str, Sequence[Batch]]
    batches: Mapping[str, Sequence[Batch]]
    #: By operator, for each of `batches` the number of other operators in a batch.
    others: Mapping[str, Sequence[int]] = field(default_factory=FrozenDict)
    #: By operator, the second of its first output row, if any.
    first_out_s: Mapping[str, float] = field(default_factory=FrozenDict)
    #: Batches with rows up to `WARM_S`, each with the number of other operators in a batch.
    early: Sequence[tuple[Batch, int]] = ()
    ticks: Sequence[Tick] = ()


def read_calibration_run(directory: Path) -> CalibrationRun:
    """Read a run; `InputError` if its journal has no batches."""
    run = read_run(directory)
    all_batches: dict[str, list[Batch]] = {}
    for tick in run.journal.ticks:
        for name, own in tick.status.batches.items():
            all_batches.setdefault(name, []).extend(own)
    if not any(all_batches.values()):
        hint = "only runs on Spark, or of a profile of resolution batches, have some"
        raise InputError("", "its journal has no batches", hint, str(directory))
    is_on_spark = engine_kind(run.journal.run) == SPARK
    parts = read_operators(directory) if is_on_spark else _simulated_operators(run)
    spec = run.spec
    late = {n: [b for b in own if b.planned_s > START_UP_S] for n, own in all_batches.items()}
    return CalibrationRun(
        name=directory.name,
        pipeline=_declared_name(directory, spec) if is_on_spark else Path(spec["query"]).stem,
        build_args=spec.get("build_args", {}),
        batch_s=spec.get("batch_s", 1.0),
        objective_s=run.journal.run.get("objective_s"),
        parts=parts,
        all_batches=all_batches,
        batches={name: [b for b in own if b.rows_in] for name, own in late.items()},
        others={
            name: [_count_others(all_batches, name, b.planned_s) for b in own if b.rows_in]
            for name, own in late.items()
        },
        first_out_s={
            n: s for n, own in all_batches.items() if (s := _first_out_s(own)) is not None
        },
        early=[
            (b, _count_others(all_batches, name, b.planned_s))
            for name, own in all_batches.items()
            for b in own
            if b.rows_in and b.planned_s <= WARM_S
        ],
        ticks=run.journal.ticks,
    )


def _first_out_s(batches: Sequence[Batch]) -> float | None:
    return next((b.committed_s for b in batches if b.rows_out), None)


def _count_others(batches: Mapping[str, Sequence[Batch]], name: str, at: float) -> int:
    return sum(
        any(b.planned_s <= at < b.committed_s for b in own)
        for other, own in batches.items()
        if other != name
    )


def _declared_name(directory: Path, spec: Mapping[str, Any]) -> str:
    """Return the name of the pipeline; the spec may have the path of its file instead."""
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
    """Read the operators that scale from the pipeline description of a run; a chain is one."""
    description = join_described(_read_description(directory))
    operators: Mapping[str, Any] = description["operators"]
    feeds: Mapping[str, Any] = description["produces"]
    writers = {
        topic: name
        for name, op in operators.items()
        for topic in op.get("outputs", [op["writes"]])
        if topic
    }
    return {
        name: DeclaredOperator(
            name=name,
            upstream=tuple(dict.fromkeys(writers[t] for t in op["reads"] if t in writers)),
            kind=op["kind"],
            slices=(op.get("slicing") or {}).get("slices", 0),
            chunk_rows=op["options"]["chunk_rows"],
            replicas=op["options"]["replicas"],
            min_replicas=op["options"]["min_replicas"],
            max_replicas=op["options"]["max_replicas"],
            queue_limit=op["options"]["queue_limit"],
            share=sum(feeds[topic].get("share", 1.0) for topic in op["reads"] if topic in feeds)
            or 1.0,
            topic=next((topic for topic in op["reads"] if topic in feeds), ""),
        )
        for name, op in operators.items()
        if find_kind(op["kind"]).scales
    }


def _simulated_operators(run: RunDirectory) -> dict[str, DeclaredOperator]:
    """Return the operators of a simulated run, which is prepared again."""
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
    """Return the topology of operators."""
    return Topology.of({name: part.upstream for name, part in parts.items()})
