"""Results of publish/subscribe as text and JSON: the benchmark, and keys that were made."""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from penstock.core.numbers import pretty, table_number
from penstock.pubsub.bench.kernel_bench import (
    PAPER_CORES,
    PAPER_OPERATIONS_PER_S,
    BenchResult,
    Rate,
    count_flops,
)
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.service_result import EndToEndResult
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.spaces.space import Space
from penstock.reports.tables import Table, as_text

#: What was measured as the limit.
_LIMITS = {Backend.NUMBA: "multiply-adds", Backend.NUMPY: "a matrix product"}


def bench_json(
    spec: BenchSpec, result: BenchResult, service: EndToEndResult | None
) -> dict[str, Any]:
    """Return the figures as a JSON object; names say whether the clock or CPU time counts."""
    limit = _arithmetic_limit(spec, result)
    return {
        "subscriptions": spec.subscriptions,
        "attributes": spec.attributes,
        "encrypted": spec.is_encrypted,
        "match_rate": result.match_rate,
        "publications": spec.publications,
        "slices": spec.slices,
        "threads": spec.threads,
        "rounds": spec.rounds,
        "backend": spec.backend.value,
        "kernel_operations_per_s": result.kernel.per_s,
        "kernel_operations_per_cpu_s": result.kernel.per_cpu_s,
        "operator_operations_per_s": result.operator.per_s,
        "operator_operations_per_cpu_s": result.operator.per_cpu_s,
        "operator_share_of_kernel_by_cpu": result.operator_share,
        "arithmetic_limit_operations_per_s": limit.per_s if limit else None,
        "arithmetic_limit_operations_per_cpu_s": limit.per_cpu_s if limit else None,
        "flops_per_operation": count_flops(spec.attributes) if limit else None,
        **_service_json(service),
        "paper_operations_per_s": PAPER_OPERATIONS_PER_S,
        "paper_cores": PAPER_CORES,
        "checked_pairs": result.checked_pairs,
        "wrong_pairs": result.wrong_pairs,
        "index_bytes": result.index_bytes,
        "build_s": result.build_s,
        "first_call_cpu_s": result.first_call_cpu_s,
        "load_average": result.load_average,
    }


def _service_json(service: EndToEndResult | None) -> dict[str, Any]:
    if service is None:
        return {"end_to_end_operations_per_s": None}
    return {
        "end_to_end_operations_per_s": service.operations_per_s,
        "end_to_end_operations_per_cpu_s": service.operations_per_cpu_s,
        "end_to_end_publications_per_s": service.publications_per_s,
        "end_to_end_measured_s": service.measured_s,
        "end_to_end_cpu_s": asdict(service.times),
        "end_to_end_profile": {name: asdict(part) for name, part in service.profile.items()},
        "half_load_publications_per_s": service.half_rate_per_s,
        "half_load_delay_p50_s": service.delay_p50_s,
        "half_load_delay_p95_s": service.delay_p95_s,
        "half_load_publications": service.delayed_publications,
        "half_load_delay_steps": [asdict(step) for step in service.delay_steps],
        "subscribe_s": service.subscribe_s,
        "checked_publications": service.checked_publications,
        "wrong_publications": service.wrong_publications,
        "service_load_average": service.load_average,
    }


def bench_text(spec: BenchSpec, result: BenchResult, service: EndToEndResult | None) -> str:
    """Return the figures as a table with what limits them."""
    limit = _arithmetic_limit(spec, result)
    paper = PAPER_OPERATIONS_PER_S
    rows = [
        _rate_row("kernel", result.kernel),
        _rate_row("operator M: decode, kernel, lists", result.operator),
        *([_service_row(service)] if service else []),
        *([_rate_row(f"limit of arithmetic: {_LIMITS[spec.backend]}", limit)] if limit else []),
        (f"E-StreamHub, {PAPER_CORES} cores", _millions(paper), _millions(paper / PAPER_CORES)),
    ]
    kind = "encrypted" if spec.is_encrypted else "plain"
    title = (
        f"{pretty(spec.publications)} publications x {pretty(spec.subscriptions)} {kind}"
        f" subscriptions, {spec.attributes} attributes, {100 * result.match_rate:.3g} % match"
    )
    columns = (
        "million pairs/s",
        f"by the clock\n{spec.threads} threads",
        "per second\nof CPU time",
    )
    notes = (*_notes(spec, result), *(_service_notes(service) if service else ()))
    return as_text(Table(columns=columns, rows=tuple(rows), title=title, notes=notes))


def _notes(spec: BenchSpec, result: BenchResult) -> tuple[str, ...]:
    verdict = f"{pretty(result.wrong_pairs)} of {pretty(result.checked_pairs)} pairs were wrong"
    return (
        "",
        f"the operator reaches {result.operator_share:.2f} of the kernel, by CPU time",
        f"{verdict}, compared with brute force",
        f"index: {table_number(result.index_bytes / 1e6)} MB in {spec.slices} slices;"
        f" made in {table_number(result.build_s)} s",
        f"first call: {table_number(result.first_call_cpu_s)} s of CPU time ({spec.backend.value})",
        f"best of {spec.rounds} rounds; load average {result.load_average:.1f}: rates by the clock"
        " count only on an idle machine",
    )


def _service_row(service: EndToEndResult) -> tuple[str, str, str]:
    rate = Rate(per_s=service.operations_per_s, per_cpu_s=service.operations_per_cpu_s)
    return _rate_row("end to end on Spark: topics, AP, M, EP", rate)


def _service_notes(service: EndToEndResult) -> tuple[str, ...]:
    total_s = service.times.total_s
    parts = ", ".join(f"{name} {100 * p.cpu_share:.0f} %" for name, p in service.profile.items())
    jvm = f"JVM {100 * service.times.jvm_s / total_s:.0f} %"
    checked = f"{service.wrong_publications} of {service.checked_publications} publications"
    return (
        "",
        f"on Spark: {pretty(round(service.publications_per_s))} publications/s for"
        f" {service.measured_s:.0f} s; {total_s:.1f} s of CPU time in all: {parts}, {jvm}",
        f"delay from publish to notification at half load,"
        f" {pretty(round(service.half_rate_per_s))} publications/s:"
        f" median {service.delay_p50_s:.2f} s, p95 {service.delay_p95_s:.2f} s",
        *_step_notes(service),
        f"{checked} had wrong notices; load average {service.load_average:.1f}",
    )


def _step_notes(service: EndToEndResult) -> tuple[str, ...]:
    """Return the mean delay of each operator, step by step."""
    notes = []
    for operator, steps in groupby(service.delay_steps, lambda step: step.operator):
        parts = list(steps)
        means = ", ".join(f"{step.step} {step.mean_s:.2f}" for step in parts)
        total_s = sum(step.mean_s for step in parts)
        notes.append(f"  of the mean delay, {operator or 'publisher'} {total_s:.2f} s: {means}")
    return tuple(notes)


def key_text(space: Space, path: Path) -> str:
    """Return what was written, without anything secret."""
    return f"{path}: key of a space with scheme {space.scheme}, attributes {', '.join(space.paths)}"


def key_json(space: Space, path: Path) -> dict[str, Any]:
    """Return what was written as JSON, without anything secret."""
    return {"file": str(path), "scheme": space.scheme, "attributes": list(space.paths)}


def _arithmetic_limit(spec: BenchSpec, result: BenchResult) -> Rate | None:
    if result.arithmetic is None:
        return None
    flops = count_flops(spec.attributes)
    return Rate(
        per_s=result.arithmetic.per_s / flops, per_cpu_s=result.arithmetic.per_cpu_s / flops
    )


def _rate_row(name: str, rate: Rate) -> tuple[str, str, str]:
    return name, _millions(rate.per_s), _millions(rate.per_cpu_s)


def _millions(rate: float) -> str:
    return table_number(rate / 1e6)
