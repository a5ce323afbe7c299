"""Fits a profile of the batch simulator to journals of runs; every number has its source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engines.events import RescaledEvent, RunningEvent
from penstock.engines.simulator.batches.model import Batches, Costs
from penstock.engines.spark.operator_config import compute_min_interval_s
from penstock.errors import InputError
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.spark_preparation import INTERVAL_S, WINDOW_S
from penstock.twin import fit_operators as operators
from penstock.twin import fit_overheads as overheads
from penstock.twin.calibration_runs import CalibrationRun, DeclaredOperator, build_topology
from penstock.twin.fit_outputs import OutputFit, fit_outputs
from penstock.twin.least_squares import Fit, fit_mean

#: Defaults of the numbers that cannot be fitted.
DEFAULTS = Batches()
#: The source of a number names up to this many runs; above it, only their count.
_MAX_RUN_NAMES = 3
_WORK = {
    "row_s": "seconds a row",
    "call_s": "seconds a task",
    "slice_s": "seconds a slice",
    "crowd_s": "interference, a slice for each further replica",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number of a profile."""

    #: Its path in the file, such as ("batches", "fixed_s").
    path: tuple[str, ...]
    #: Its name in reports.
    label: str
    value: Any
    fit: Fit | None = None
    #: The runs it was fitted to, or why it was not fitted and the value used instead.
    source: str = ""

    @property
    def is_fitted(self) -> bool:
        """Whether the value comes from the runs."""
        return self.fit is not None and self.fit.is_fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All numbers of a profile, and the runs they were fitted to."""

    runs: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    def value(self, *path: str) -> Any:
        """Return one number by its path."""
        return next(e.value for e in self.estimates if e.path == path)


def calibrate(runs: Sequence[CalibrationRun]) -> Calibration:
    """Fit a profile; all pipelines share the numbers of the engine."""
    _check(runs)
    names = list(dict.fromkeys(run.pipeline for run in runs))
    estimates = list(_engine(runs))
    for name in names:
        members = [run for run in runs if run.pipeline == name]
        own = list(_overheads(members, ("pipelines", name, "batches"))) if len(names) > 1 else []
        rules = Batches(**{e.path[-1]: e.value for e in (*estimates, *own) if "batches" in e.path})
        if (objective_s := members[0].objective_s) is not None:
            path = ("pipelines", name, "objective_s")
            objective = Estimate(
                path=path, label="objective", value=objective_s, source="option of the runs"
            )
            estimates.append(objective)
        for arg, value in members[0].build_args.items():
            place = ("pipelines", name, "build_args", arg)
            estimates.append(
                Estimate(path=place, label=arg, value=str(value), source="option of the runs")
            )
        estimates += own
        for part in members[0].parts.values():
            estimates += _operator(members, part, rules)
    return Calibration(runs=tuple(run.name for run in runs), estimates=tuple(estimates))


def _check(runs: Sequence[CalibrationRun]) -> None:
    first_runs: dict[str, CalibrationRun] = {}
    for run in runs:
        first = first_runs.setdefault(run.pipeline, run)
        if dict(first.build_args) != dict(run.build_args) or first.batch_s != run.batch_s:
            problem = f"{first.name} and {run.name} ran {run.pipeline} with different --set values"
            hint = "calibrate runs with the same --set and --batch together"
            raise InputError("RUN", problem, hint)
        if set(first.parts) != set(run.parts):
            problem = f"{first.name} and {run.name} have different pipelines named {run.pipeline}"
            raise InputError("RUN", problem, "give one of the pipelines another name")


# --- the engine


def _engine(runs: Sequence[CalibrationRun]) -> Iterator[Estimate]:
    yield from _overheads(runs, ("batches",))
    yield from _rescaling(runs)
    source = "what a snapshot looks back on; a run that is sped up divides it"
    yield _make_constant("monitor", "window_s", "monitor delay", WINDOW_S, source)
    yield _make_constant("loop", "interval_s", "interval", INTERVAL_S, "unless a run sets another")


def _overheads(runs: Sequence[CalibrationRun], place: tuple[str, ...]) -> Iterator[Estimate]:
    """Yield the overheads of batches, of the engine or of one pipeline; pipelines differ."""
    batch_s, runtime = runs[0].batch_s, "setting of the engine"
    for name, label, value, source in (
        ("batch_s", "batch length", batch_s, "option of the runs"),
        ("gap_s", "batch gap", compute_min_interval_s(batch_s), runtime),
    ):
        yield Estimate(path=(*place, name), label=label, value=value, source=source)
    fits = overheads.fit_overheads(runs)
    source = _describe_source(runs)
    for name, label, default in (
        ("fixed_s", "batch floor", DEFAULTS.fixed_s),
        ("per_replica_s", "batch overhead, each replica", 0.0),
        ("per_other_s", "interference, each other query in a batch", 0.0),
        ("between_s", "batch overhead, from commit to plan", DEFAULTS.between_s),
        ("poll_s", "batch overhead, next poll of the source", DEFAULTS.poll_s),
        ("look_s", "batch overhead, from reading offsets to plan", DEFAULTS.look_s),
        ("cold", "batch overhead, factor at the start", 0.0),
        ("cold_s", "batch overhead, decay of that factor", DEFAULTS.cold_s),
        ("noise", "noise", DEFAULTS.noise),
    ):
        fit = fits[name]
        if fit.is_fitted or len(place) == 1:  # else the number of the engine applies
            yield _make_estimate((*place, name), label, fit, source, default)


def _rescaling(runs: Sequence[CalibrationRun]) -> Iterator[Estimate]:
    pauses, changes = [], []
    for event in (event for run in runs for tick in run.ticks for event in tick.status.events):
        if isinstance(event, RescaledEvent):
            pauses.append(float(event.pause_s))
        elif isinstance(event, RunningEvent) and event.after_s is not None:
            changes.append(float(event.after_s))
    yield _make_constant(
        "rescaling", "scope", "operators that pause", "native", "setting of the engine"
    )
    fit = fit_mean(np.array(pauses))
    default = float(np.mean(pauses)) if pauses else 0.0
    effect = f", changes there after {np.median(changes):.2f} s" if changes else ""
    why = f"{len(pauses)} pauses of native operators{effect}"
    yield _make_estimate(("rescaling", "pause_s"), "rescale pauses", fit, why, default)


# --- operators


def _operator(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, rules: Batches
) -> Iterator[Estimate]:
    place = ("pipelines", runs[0].pipeline, "operators", part.name)
    costs = (*place, "costs")
    source = _describe_source(runs, part.name)
    clump = operators.fit_clump(runs, part)
    work = operators.fit_work(runs, part, max(1.0, clump.value))
    values = {name: fit.value for name, fit in work.items()}
    known = Costs(slices=part.slices).but(**values)
    capacity = known.capacity_rate(rules)
    row = work["row_s"]
    low = known.but(row_s=row.high).capacity_rate(rules)
    high = known.but(row_s=row.low).capacity_rate(rules)
    fit = Fit(capacity, low, high, row.count, row.is_fitted)
    yield _make_estimate((*place, "capacity_rate"), "per-replica capacity", fit, source, capacity)
    for name, value in _structure(part).items():
        yield Estimate(
            path=(*place, name), label=name, value=value, source="declared by the pipeline"
        )
    for name, fit in work.items():
        yield _make_estimate((*costs, name), _WORK[name], fit, source, 0.0)
    if part.slices:
        yield _make_estimate(
            (*costs, "clump"), "rows of one key that arrive together", clump, source, 1.0
        )
    variation = operators.fit_service_scv(runs, part)
    fit = operators.fit_batch_noise(runs, part, known, variation.value)
    yield _make_estimate((*costs, "noise"), "noise of batches", fit, source, 0.0)
    fit = operators.fit_task_noise(runs, part, values["row_s"], values["call_s"])
    yield _make_estimate((*costs, "spread"), "noise of tasks", fit, source, 0.0)
    yield _make_estimate(
        (*costs, "cpu"), "CPU share", operators.fit_cpu_share(runs, part), source, 1.0
    )
    outputs = fit_outputs(runs, part)
    yield from _outputs(outputs, costs, source)
    for name, value in _declared_costs(part).items():
        yield Estimate(
            path=(*costs, name), label=name, value=value, source="declared by the pipeline"
        )
    yield _make_estimate((*place, "scv"), "variation of rows", variation, source, 0.0)
    downstream = build_topology(runs[0].parts).downstream[part.name]
    for target in () if outputs.new_keys.is_fitted else downstream:
        label = f"selectivity to {target}"
        yield _make_estimate((*place, "sent", target), label, outputs.share, source, 1.0)
    if part.slices and (shares := operators.measure_slice_shares(runs, part)):
        share_source = f"seconds of slices in snapshots; {source}"
        label = "shares of slices"
        yield Estimate(
            path=(*place, "slice_shares"), label=label, value=shares, source=share_source
        )


def _outputs(outputs: OutputFit, costs: tuple[str, ...], source: str) -> Iterator[Estimate]:
    if outputs.delay.value:
        label = "event time until the output"
        yield _make_estimate((*costs, "out_delay_s"), label, outputs.delay, source, 0.0)
    if outputs.first_rows:
        yield Estimate(
            path=(*costs, "first_rows"),
            label="rows without output",
            value=outputs.first_rows,
            source=f"rows before the first that comes out; {source}",
        )
    if outputs.new_keys.is_fitted:
        label = "keys that a row adds"
        yield _make_estimate((*costs, "new_keys"), label, outputs.new_keys, source, 0.0)


def _structure(part: DeclaredOperator) -> Mapping[str, Any]:
    fields: dict[str, Any] = {"distribution": "gamma", "replicas": part.replicas}
    if part.upstream:
        fields["upstream"] = list(part.upstream)
    else:
        fields["share"] = part.share
    if part.min_replicas > 1:
        fields["min_replicas"] = part.min_replicas
    if part.max_replicas is not None:
        fields["max_replicas"] = part.max_replicas
    if part.queue_limit is not None:
        fields["queue_limit"] = part.queue_limit
    return fields | ({"native": True} if find_kind(part.kind).pauses else {})


def _declared_costs(part: DeclaredOperator) -> Mapping[str, Any]:
    costs = {"slices": part.slices, "chunk_rows": part.chunk_rows, "topic": part.topic}
    return {name: value for name, value in costs.items() if value}


# --- estimates


def _make_constant(section: str, name: str, label: str, value: Any, source: str) -> Estimate:
    return Estimate(path=(section, name), label=label, value=value, source=source)


def _make_estimate(
    path: tuple[str, ...], label: str, fit: Fit, source: str, default: float
) -> Estimate:
    if fit.is_fitted:
        return Estimate(path=path, label=label, value=fit.value, fit=fit, source=source)
    why = f"not fitted: {source} do not determine it; {default:g} is used"
    return Estimate(path=path, label=label, value=default, fit=fit, source=why)


def _describe_source(runs: Sequence[CalibrationRun], operator: str = "") -> str:
    count = sum(
        len(batches)
        for run in runs
        for name, batches in run.batches.items()
        if operator in ("", name)
    )
    are_few = len(runs) <= _MAX_RUN_NAMES
    names = ", ".join(run.name for run in runs) if are_few else f"all {len(runs)} runs"
    return f"{count} batches of {names}"
