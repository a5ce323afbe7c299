"""A profile of level batches, fitted to journals of real runs, each number with its source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.engines.port import Batch
from penstock.engines.simulator.batch_model import Batches, Costs
from penstock.engines.spark.duty import GAP_S
from penstock.errors import InputError
from penstock.lab import calibrating_operators as operators
from penstock.lab.calibrating_runs import Evidence, Part, topology_of
from penstock.lab.preparing import INTERVAL_S, WINDOW_S
from penstock.lab.robust import Fit, FloatArray, fit_line, fit_mean

#: What is used where nothing could be fitted.
USUAL = Batches()
#: A plan that comes so many times later than most was held back.
_HELD = 3.0
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


def calibrate(runs: Sequence[Evidence]) -> Calibration:
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
            told = Estimate(path=path, label="objective", value=objective_s, source="as asked")
            found.append(told)
        found += own
        for part in mine[0].parts.values():
            found += _operator(mine, part, rules)
    return Calibration(runs=tuple(run.name for run in runs), estimates=tuple(found))


def _check(runs: Sequence[Evidence]) -> None:
    seen: dict[str, Evidence] = {}
    for run in runs:
        first = seen.setdefault(run.pipeline, run)
        if dict(first.numbers) != dict(run.numbers) or first.batch_s != run.batch_s:
            problem = f"{first.name} and {run.name} ran {run.pipeline} with different numbers"
            hint = "calibrate runs with the same --set and --batch together"
            raise InputError("RUN", problem, hint)


# --- the engine


def _engine(runs: Sequence[Evidence]) -> Iterator[Estimate]:
    yield _given("batches", "batch_s", "batch length", runs[0].batch_s, "as asked")
    yield _given("batches", "gap_s", "batch gap", GAP_S, "as the runtime has it")
    yield from _overheads(runs, ("batches",))
    yield from _rescaling(runs)
    source = "what a snapshot looks back on; a run that is sped up divides it"
    yield _given("monitor", "window_s", "monitor delay", WINDOW_S, source)
    yield _given("loop", "interval_s", "interval", INTERVAL_S, "unless a run is told otherwise")


def _overheads(runs: Sequence[Evidence], place: tuple[str, ...]) -> Iterator[Estimate]:
    """What batches take besides work; of single pipelines too, for some leave cores more idle."""
    pairs = [
        (batch, others)
        for run in runs
        for name, some in run.batches.items()
        for batch, others in zip(some, run.others[name], strict=True)
    ]
    batches = [batch for batch, _ in pairs]
    columns = np.array([[1.0, b.replicas, others] for b, others in pairs]).reshape(-1, 3)
    lost_s = np.array([b.committed_s - b.planned_s - b.longest_s for b in batches])
    floor, replica, other = fit_line(columns, np.maximum(lost_s, 0.0))
    factors = np.array([floor.value, replica.value, other.value])
    noise = operators.noise_of(batches, columns @ factors)
    between = fit_mean(_usual(list(_between(runs))))
    poll = fit_mean(np.array(list(_polls(runs))))
    look = fit_mean(np.array(list(_looks(runs))))
    said = _from(runs)
    for name, label, fit, usual in (
        ("fixed_s", "batch floor", floor, USUAL.fixed_s),
        ("per_replica_s", "batch overhead, each replica", replica, 0.0),
        ("per_other_s", "interference, each other query in a batch", other, 0.0),
        ("between_s", "batch overhead, from commit to plan", between, USUAL.between_s),
        ("poll_s", "batch overhead, asked again", poll, USUAL.poll_s),
        ("look_s", "batch overhead, from look to plan", look, USUAL.look_s),
        ("noise", "noise", noise, USUAL.noise),
    ):
        if fit.is_fitted or len(place) == 1:  # else what holds for all does for this one, too
            yield _named((*place, name), label, fit, said, usual)


def _between(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds from a commit to the plan of a batch whose rows waited already."""
    for one, two in _neighbours(runs):
        more = one.waiting is not None and one.waiting > one.rows_in
        if more and one.committed_s > one.planned_s + GAP_S:
            yield two.planned_s - one.committed_s


def _usual(seconds: Sequence[float]) -> FloatArray:
    """Leave out what is far above the middle: there, a full queue behind held the operator."""
    found = np.array(seconds)
    return found[found <= _HELD * np.median(found)] if len(found) else found


def _polls(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds behind the least gap after which a source that was early is asked again."""
    for one, two in _neighbours(runs):
        late_s = two.planned_s - one.planned_s - GAP_S
        if one.committed_s < one.planned_s + 0.7 * GAP_S and -0.05 < late_s < 0.3 * GAP_S:
            yield max(0.0, late_s)


def _looks(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds that rows are older in the plans of sources than the time between plans makes them.

    Of a source that leaves nothing behind, rows are half of the time between two plans old on
    average, and half of that between two writes; what they are older passed after the look.
    """
    for run in runs:
        sources = [name for name, part in run.parts.items() if not part.upstream]
        last: dict[str, Batch] = {}
        for tick in run.ticks:
            ages = []
            for name in sources:
                fresh = [b for b in tick.status.batches.get(name, ()) if b.rows_in]
                if fresh and name in last:
                    ages.append(_half_gap_s([last[name], *fresh]))
                last |= {name: fresh[-1]} if fresh else {}
            known = [age for age in ages if age is not None]
            if tick.status.age_s is not None and len(known) == len(sources):
                yield tick.status.age_s - sum(known) / len(known) - USUAL.write_s / 2


def _half_gap_s(batches: Sequence[Batch]) -> float | None:
    """Half of the time between plans, by rows; None if rows were left behind."""
    if any(b.waiting is None or b.waiting > b.rows_in for b in batches):
        return None
    rows = [b.rows_in for b in batches[1:]]
    gaps = [two.planned_s - one.planned_s for one, two in pairwise(batches)]
    return sum(n * gap for n, gap in zip(rows, gaps, strict=True)) / sum(rows) / 2


def _neighbours(runs: Sequence[Evidence]) -> Iterator[tuple[Batch, Batch]]:
    for run in runs:
        for some in run.batches.values():
            yield from pairwise(some)


def _rescaling(runs: Sequence[Evidence]) -> Iterator[Estimate]:
    pauses, changes = [], []
    for event in (event for run in runs for tick in run.ticks for event in tick.status.events):
        if event.kind == "rescaled" and "pause_s" in event.numbers:
            pauses.append(float(event.numbers["pause_s"]))
        elif event.kind == "running" and "after_s" in event.numbers:
            changes.append(float(event.numbers["after_s"]))
    yield _given("rescaling", "scope", "who pauses", "native", "as the runtime has it")
    fit = fit_mean(np.array(pauses))
    usual = float(np.mean(pauses)) if pauses else 0.0
    shown = f", changes there after {np.median(changes):.2f} s" if changes else ""
    why = f"{len(pauses)} pauses of native operators{shown}"
    yield _named(("rescaling", "pause_s"), "rescale pauses", fit, why, usual)


# --- operators


def _operator(runs: Sequence[Evidence], part: Part, rules: Batches) -> Iterator[Estimate]:
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
    variation = operators.variation(runs, part)
    fit = operators.unsteadiness(runs, part, known, variation.value)
    yield _named((*costs, "noise"), "noise of batches", fit, said, 0.0)
    fit = operators.spread(runs, part, values["row_s"], values["call_s"])
    yield _named((*costs, "spread"), "noise of tasks", fit, said, 0.0)
    yield _named((*costs, "cpu"), "processor's share", operators.cpu(runs, part), said, 1.0)
    delay = operators.out_delay(runs, part)
    if delay.value:
        yield _named((*costs, "out_delay_s"), "event time until the output", delay, said, 0.0)
    barren = operators.first_rows(runs, part, delay.value)
    if barren:
        source = f"rows before the first that comes out; {said}"
        label = "rows without output"
        yield Estimate(path=(*costs, "first_rows"), label=label, value=barren, source=source)
    for name, value in _declared_costs(part).items():
        yield Estimate(path=(*costs, name), label=name, value=value, source="as declared")
    yield _named((*place, "scv"), "variation of rows", variation, said, 0.0)
    selectivity = operators.selectivity(runs, part, delay.value, barren)
    for target in topology_of(runs[0].parts).downstream[part.name]:
        label = f"selectivity to {target}"
        yield _named((*place, "sent", target), label, selectivity, said, 1.0)
    if part.slices and (shares := operators.weights(runs, part)):
        source = f"seconds of slices in snapshots; {said}"
        label = "shares of slices"
        yield Estimate(path=(*place, "slice_shares"), label=label, value=shares, source=source)


def _structure(part: Part) -> Mapping[str, Any]:
    told: dict[str, Any] = {"distribution": "gamma", "replicas": part.replicas}
    if part.upstream:
        told["upstream"] = list(part.upstream)
    else:
        told["share"] = part.share
    if part.min_replicas > 1:
        told["min_replicas"] = part.min_replicas
    if part.max_replicas is not None:
        told["max_replicas"] = part.max_replicas
    if part.queue_limit is not None:
        told["queue_limit"] = part.queue_limit
    return told | ({"native": True} if part.kind == "native" else {})


def _declared_costs(part: Part) -> Mapping[str, Any]:
    told = {"slices": part.slices, "chunk_rows": part.chunk_rows, "topic": part.topic}
    return {name: value for name, value in told.items() if value}


# --- how numbers are told


def _given(section: str, name: str, label: str, value: Any, source: str) -> Estimate:
    return Estimate(path=(section, name), label=label, value=value, source=source)


def _named(path: tuple[str, ...], label: str, fit: Fit, said: str, usual: float) -> Estimate:
    if fit.is_fitted:
        return Estimate(path=path, label=label, value=fit.value, fit=fit, source=said)
    why = f"not fitted: {said} do not tell it; {usual:g} is used"
    return Estimate(path=path, label=label, value=usual, fit=fit, source=why)


def _from(runs: Sequence[Evidence], operator: str = "") -> str:
    count = sum(
        len(some) for run in runs for name, some in run.batches.items() if operator in ("", name)
    )
    names = ", ".join(run.name for run in runs)
    return f"{count} batches of {names}"
