"""A profile of resolution batches, fitted to journals of real runs, each number with its source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engines.events import RescaledEvent, RunningEvent
from penstock.engines.simulator.batches.model import Batches, Costs
from penstock.engines.spark.operator_config import min_interval_for
from penstock.errors import InputError
from penstock.pipelines.kinds.kind import find_kind
from penstock.runs.spark_preparation import INTERVAL_S, WINDOW_S
from penstock.twin import fit_operators as operators
from penstock.twin import fit_overheads as overheads
from penstock.twin.calibration_runs import CalibrationRun, DeclaredOperator, build_topology
from penstock.twin.fit_outputs import OutputFit, fit_outputs
from penstock.twin.least_squares import Fit, fit_mean

#: What is used where nothing could be fitted.
USUAL = Batches()
#: More runs than these are counted, not named, behind every number.
_NAMED = 3
_WORK = {
    "row_s": "seconds a row",
    "call_s": "seconds a task",
    "slice_s": "seconds a slice",
    "crowd_s": "interference, a slice for each further replica",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number of a profile."""

    #: Its place in the file, such as ("batches", "fixed_s").
    path: tuple[str, ...]
    #: What people call it.
    label: str
    value: Any
    fit: Fit | None = None
    #: What it was fitted from, or why it was not and what is used instead.
    source: str = ""

    @property
    def is_fitted(self) -> bool:
        """Whether the runs tell it."""
        return self.fit is not None and self.fit.is_fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All numbers of a profile, and the runs that they are from."""

    runs: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    def value(self, *path: str) -> Any:
        """Return one number by its place."""
        return next(e.value for e in self.estimates if e.path == path)


def calibrate(runs: Sequence[CalibrationRun]) -> Calibration:
    """Fit a profile; runs of different pipelines share the numbers of the engine."""
    _check(runs)
    names = list(dict.fromkeys(run.pipeline for run in runs))
    found = list(_engine(runs))
    for name in names:
        mine = [run for run in runs if run.pipeline == name]
        own = list(_overheads(mine, ("pipelines", name, "batches"))) if len(names) > 1 else []
        rules = Batches(**{e.path[-1]: e.value for e in (*found, *own) if "batches" in e.path})
        if (objective_s := mine[0].objective_s) is not None:
            path = ("pipelines", name, "objective_s")
            objective = Estimate(path=path, label="objective", value=objective_s, source="as asked")
            found.append(objective)
        for number, value in mine[0].numbers.items():
            place = ("pipelines", name, "numbers", number)
            found.append(Estimate(path=place, label=number, value=str(value), source="as asked"))
        found += own
        for part in mine[0].parts.values():
            found += _operator(mine, part, rules)
    return Calibration(runs=tuple(run.name for run in runs), estimates=tuple(found))


def _check(runs: Sequence[CalibrationRun]) -> None:
    seen: dict[str, CalibrationRun] = {}
    for run in runs:
        first = seen.setdefault(run.pipeline, run)
        if dict(first.numbers) != dict(run.numbers) or first.batch_s != run.batch_s:
            problem = f"{first.name} and {run.name} ran {run.pipeline} with different numbers"
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
    yield _given("monitor", "window_s", "monitor delay", WINDOW_S, source)
    yield _given("loop", "interval_s", "interval", INTERVAL_S, "unless a run sets another")


def _overheads(runs: Sequence[CalibrationRun], place: tuple[str, ...]) -> Iterator[Estimate]:
    """What batches take besides work; of single pipelines too, for some leave cores more idle."""
    batch_s, runtime = runs[0].batch_s, "as the runtime has it"
    for name, label, value, source in (
        ("batch_s", "batch length", batch_s, "as asked"),
        ("gap_s", "batch gap", min_interval_for(batch_s), runtime),
    ):
        yield Estimate(path=(*place, name), label=label, value=value, source=source)
    fits = overheads.fit_overheads(runs)
    said = _from(runs)
    for name, label, usual in (
        ("fixed_s", "batch floor", USUAL.fixed_s),
        ("per_replica_s", "batch overhead, each replica", 0.0),
        ("per_other_s", "interference, each other query in a batch", 0.0),
        ("between_s", "batch overhead, from commit to plan", USUAL.between_s),
        ("poll_s", "batch overhead, asked again", USUAL.poll_s),
        ("look_s", "batch overhead, from look to plan", USUAL.look_s),
        ("cold", "batch overhead, more at the beginning", 0.0),
        ("cold_s", "batch overhead, until that fades", USUAL.cold_s),
        ("noise", "noise", USUAL.noise),
    ):
        fit = fits[name]
        if fit.is_fitted or len(place) == 1:  # else what holds for all does for this one, too
            yield _named((*place, name), label, fit, said, usual)


def _rescaling(runs: Sequence[CalibrationRun]) -> Iterator[Estimate]:
    pauses, changes = [], []
    for event in (event for run in runs for tick in run.ticks for event in tick.status.events):
        if isinstance(event, RescaledEvent):
            pauses.append(float(event.pause_s))
        elif isinstance(event, RunningEvent) and event.after_s is not None:
            changes.append(float(event.after_s))
    yield _given("rescaling", "scope", "who pauses", "native", "as the runtime has it")
    fit = fit_mean(np.array(pauses))
    usual = float(np.mean(pauses)) if pauses else 0.0
    shown = f", changes there after {np.median(changes):.2f} s" if changes else ""
    why = f"{len(pauses)} pauses of native operators{shown}"
    yield _named(("rescaling", "pause_s"), "rescale pauses", fit, why, usual)


# --- operators


def _operator(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, rules: Batches
) -> Iterator[Estimate]:
    place = ("pipelines", runs[0].pipeline, "operators", part.name)
    costs = (*place, "costs")
    said = _from(runs, part.name)
    clump = operators.clump(runs, part)
    work = operators.work(runs, part, max(1.0, clump.value))
    values = {name: fit.value for name, fit in work.items()}
    known = Costs(slices=part.slices).but(**values)
    capacity = known.capacity_rate(rules)
    row = work["row_s"]
    low = known.but(row_s=row.high).capacity_rate(rules)
    high = known.but(row_s=row.low).capacity_rate(rules)
    fit = Fit(capacity, low, high, row.count, row.is_fitted)
    yield _named((*place, "capacity_rate"), "per-replica capacity", fit, said, capacity)
    for name, value in _structure(part).items():
        yield Estimate(path=(*place, name), label=name, value=value, source="as declared")
    for name, fit in work.items():
        yield _named((*costs, name), _WORK[name], fit, said, 0.0)
    if part.slices:
        yield _named((*costs, "clump"), "rows that fall together", clump, said, 1.0)
    variation = operators.fit_service_scv(runs, part)
    fit = operators.fit_batch_noise(runs, part, known, variation.value)
    yield _named((*costs, "noise"), "noise of batches", fit, said, 0.0)
    fit = operators.spread(runs, part, values["row_s"], values["call_s"])
    yield _named((*costs, "spread"), "noise of tasks", fit, said, 0.0)
    yield _named((*costs, "cpu"), "processor's share", operators.cpu(runs, part), said, 1.0)
    shown = fit_outputs(runs, part)
    yield from _outputs(shown, costs, said)
    for name, value in _declared_costs(part).items():
        yield Estimate(path=(*costs, name), label=name, value=value, source="as declared")
    yield _named((*place, "scv"), "variation of rows", variation, said, 0.0)
    behind = build_topology(runs[0].parts).downstream[part.name]
    for target in () if shown.new_keys.is_fitted else behind:
        label = f"selectivity to {target}"
        yield _named((*place, "sent", target), label, shown.share, said, 1.0)
    if part.slices and (shares := operators.measure_slice_shares(runs, part)):
        source = f"seconds of slices in snapshots; {said}"
        label = "shares of slices"
        yield Estimate(path=(*place, "slice_shares"), label=label, value=shares, source=source)


def _outputs(shown: OutputFit, costs: tuple[str, ...], said: str) -> Iterator[Estimate]:
    if shown.delay.value:
        label = "event time until the output"
        yield _named((*costs, "out_delay_s"), label, shown.delay, said, 0.0)
    if shown.first_rows:
        yield Estimate(
            path=(*costs, "first_rows"),
            label="rows without output",
            value=shown.first_rows,
            source=f"rows before the first that comes out; {said}",
        )
    if shown.new_keys.is_fitted:
        label = "keys that a row adds"
        yield _named((*costs, "new_keys"), label, shown.new_keys, said, 0.0)


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


def _given(section: str, name: str, label: str, value: Any, source: str) -> Estimate:
    return Estimate(path=(section, name), label=label, value=value, source=source)


def _named(path: tuple[str, ...], label: str, fit: Fit, said: str, usual: float) -> Estimate:
    if fit.is_fitted:
        return Estimate(path=path, label=label, value=fit.value, fit=fit, source=said)
    why = f"not fitted: {said} do not tell it; {usual:g} is used"
    return Estimate(path=path, label=label, value=usual, fit=fit, source=why)


def _from(runs: Sequence[CalibrationRun], operator: str = "") -> str:
    count = sum(
        len(some) for run in runs for name, some in run.batches.items() if operator in ("", name)
    )
    few = len(runs) <= _NAMED
    names = ", ".join(run.name for run in runs) if few else f"all {len(runs)} runs"
    return f"{count} batches of {names}"
