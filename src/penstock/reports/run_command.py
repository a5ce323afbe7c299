"""The command that repeats a run, from the spec in its run.toml."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.decentralized.run_record import PROCESSES, SIMULATED

#: Options of both commands: field of the spec, option.
_COMMON = {
    "workload": "--workload",
    "policy": "--policy",
    "minutes": "--minutes",
    "seed": "--seed",
    "objective_s": "--objective",
    "interval_s": "--interval",
}
_SIMULATED = {"query": "--query", "engine": "--engine", "mode": "--mode"}
_SPARK = {
    "controller": "--controller",
    "speed_up": "--speed-up",
    "rate_scale": "--rate-scale",
    "batch_s": "--batch",
    "master": "--master",
    "executors": "--executors",
    "journal_mb": "--journal-mb",
    "retry_minutes": "--retry-for",
    "overhead_share": "--overhead-share",
    "chain": "--chain",
}
#: Commands of runs without a controller by the engine of the spec.
_DECENTRALIZED = {SIMULATED: "decentralized simulate", PROCESSES: "decentralized run"}
#: Options K=V, which may be given several times.
_PAIRS = {
    "params": "--param",
    "guards": "--guard",
    "workload_params": "--workload-param",
    "profile": "--profile",
    "build_args": "--set",
    "conf": "--conf",
}


def repeat_command(spec: Mapping[str, Any]) -> str:
    """Return the command line of a run; a run directory is left to its default.

    >>> repeat_command({"query": "q1", "policy": "ds2", "seed": 7, "guards": {"budget": 8}})
    'penstock simulate --query q1 --policy ds2 --seed 7 --guard budget=8'
    >>> repeat_command({"pipeline": "images", "speed_up": 20.0, "dry_run": True})
    'penstock run images --speed-up 20 --dry-run'
    >>> repeat_command({"engine": "processes", "options": {"min_actions": 5}})
    'penstock decentralized run --min-actions 5'
    >>> repeat_command({"engine": "attached", "policy": "ds2", "objective_s": 30.0})
    "penstock.attach(spark, freshness=30.0, policy='ds2')"
    >>> repeat_command({"engine": "attached", "partitions": {"words": "2:6"}, "mode": "restart"})
    "penstock.attach(spark, [penstock.elastic(words, partitions=(2, 6))], mode='restart')"
    """
    return _attach_call(spec) if spec.get("engine") == "attached" else shlex.join(_words(spec))


def _attach_call(spec: Mapping[str, Any]) -> str:
    """Return the call in Python that follows the application again."""
    bounds, partitions = spec.get("executors"), spec.get("partitions", {})
    named = {
        "freshness": spec.get("objective_s"),
        "executors": _read_range(bounds) if bounds else None,
    }
    elastics = ", ".join(
        f"penstock.elastic({name}, partitions={_read_range(bounds)})"
        for name, bounds in partitions.items()
    )
    named |= {name: spec.get(name) for name in ("policy", "params", "guards", "mode", "interval_s")}
    given = (f"{name}={value!r}" for name, value in named.items() if value)
    first = ("spark", f"[{elastics}]") if elastics else ("spark",)
    return f"penstock.attach({', '.join((*first, *given))})"


def _read_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    return int(low), int(high)


def _words(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("engine") in _DECENTRALIZED:
        yield from ("penstock", *_DECENTRALIZED[spec["engine"]].split())
        given = spec.get("options", {})
        for name, value in given.items() if isinstance(given, Mapping) else ():
            yield from (f"--{name.replace('_', '-')}", _text(value))
        return
    if "pipeline" in spec:
        yield from ("penstock", "run", str(spec["pipeline"]))
        options = {**_COMMON, **_SPARK}
    elif spec.get("engine") == "prometheus":
        yield from ("penstock", "watch")
        options = {"prometheus": "--prometheus", "query": "--map", **_COMMON}
    else:
        yield from ("penstock", "simulate")
        options = {**_SIMULATED, **_COMMON}
    for field, option in options.items():
        if field in spec:
            yield from (option, _text(spec[field]))
    for field, option in _PAIRS.items():
        values = spec.get(field, {})
        for name, value in values.items() if isinstance(values, Mapping) else ():
            yield from (option, f"{name}={_text(value)}")
    initial = spec.get("initial")
    if isinstance(initial, Mapping):
        yield from ("--initial", ",".join(f"{name}:{number}" for name, number in initial.items()))
    elif initial is not None:
        yield from ("--initial", _text(initial))
    if spec.get("dry_run"):
        yield "--dry-run"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)
