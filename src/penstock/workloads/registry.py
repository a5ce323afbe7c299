"""The registry of workloads; builds one from a name or an expression.

>>> make_workload("convergence").total_records
7200000000
>>> make_workload("cosine + constant(rate=5)", 10).duration_s
600.0
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from penstock.core.params import Params
from penstock.errors import InputError, nearest
from penstock.workloads import curves, thesis, trace
from penstock.workloads import irregular as wild
from penstock.workloads import steps as levels
from penstock.workloads.expression import (
    MAX_MINUTES,
    NamedPart,
    PartSequence,
    PartSum,
    ScaledPart,
    TimedPart,
    Tree,
    parse,
    write,
)
from penstock.workloads.pattern import MINUTES, SEED, Pattern, Request
from penstock.workloads.spikes import Spikes, with_spikes
from penstock.workloads.workload import Workload

#: Every named workload, in the order in which they are shown.
PATTERNS: Mapping[str, Pattern] = {
    pattern.name: pattern
    for room in (thesis, levels, curves, wild, trace)
    for pattern in room.PATTERNS
}
_SPIKE_NAMES = frozenset(item.name for item in Spikes.describe())


def make_workload(
    name: str,
    minutes: float | None = None,
    seed: int = SEED,
    given: Mapping[str, Any] | None = None,
) -> Workload:
    """Make a workload from a name or an expression of them (see `penstock.workloads.expression`).

    `given` holds parameters of a single name; in an expression they stand in parentheses
    behind each name, as may `seed=S`. Without it every part draws from the same seed:
    `a` is the same load alone and within `a + b`. Parts of `a then b` that do not say
    how long they last share the time that is left. Of a part of a minute the load is the first
    seconds of that minute.
    """
    tree = parse(name)
    if given:
        tree = _with_given(tree, given)
    length = natural_minutes(tree) if minutes is None else minutes
    if not 1 / 60 <= length <= MAX_MINUTES:
        problem = f"must be from 1/60 (a second) to {MAX_MINUTES}, got {length}"
        raise InputError("minutes", problem)
    load = _build(tree, math.ceil(length), seed)
    return load if length == int(length) else load.between(0, round(length * 60))


def find_pattern(name: str) -> Pattern:
    """Return a pattern, or an error that names the nearest one."""
    if name not in PATTERNS:
        raise InputError("workload", f"unknown workload {name!r}", nearest(name, PATTERNS))
    return PATTERNS[name]


def read_params(pattern: Pattern, given: Mapping[str, Any]) -> tuple[Params, Spikes]:
    """Read a pattern's own parameters, and those of the spikes on top of it."""
    own = {key: value for key, value in given.items() if key not in _SPIKE_NAMES}
    spikes = {key: value for key, value in given.items() if key in _SPIKE_NAMES}
    defaults = {item: getattr(pattern.spikes, item) for item in _SPIKE_NAMES}
    try:
        _check_names(own, pattern)
        merged = {key: value for key, value in defaults.items() if value is not None} | spikes
        return pattern.params.parse(own), Spikes.parse(merged)
    except InputError as error:
        raise error.under(pattern.name) from None


def natural_minutes(tree: Tree) -> int:
    """Return the default length of a workload."""
    match tree:
        case NamedPart(name):
            return find_pattern(name).minutes
        case ScaledPart(part):
            return natural_minutes(part)
        case TimedPart(_, minutes):
            return minutes
        case PartSum(parts):
            return max(natural_minutes(part) for part in parts)
        case PartSequence(parts):
            fixed = [part.minutes for part in parts if isinstance(part, TimedPart)]
            return sum(fixed) if len(fixed) == len(parts) else max(MINUTES, sum(fixed) + len(parts))


def _check_names(own: Mapping[str, Any], pattern: Pattern) -> None:
    known = [item.name for item in pattern.params.describe()]
    for key in own:
        if key not in known:
            raise InputError(key, "unknown parameter", nearest(key, [*known, *_SPIKE_NAMES]))


def _with_given(tree: Tree, given: Mapping[str, Any]) -> Tree:
    if "seed" in given:
        raise InputError("seed", "is not a parameter", "give it on its own, such as --seed 7")
    if not isinstance(tree, NamedPart):
        key = next(iter(given))
        hint = "write parameters behind the name they are for, such as cosine(noise=0) + constant"
        raise InputError(key, f"there is more than one workload in {write(tree)!r}", hint)
    merged = dict(tree.given) | {key: str(value) for key, value in given.items()}
    return NamedPart(tree.name, tuple(merged.items()))


def _build(tree: Tree, minutes: int, seed: int) -> Workload:
    match tree:
        case NamedPart():
            return _build_named(tree, minutes, seed)
        case ScaledPart(part, factor):
            return _build(part, minutes, seed) * factor
        case TimedPart(part, own):
            if own > minutes:
                raise InputError("workload", f"{write(tree)!r} does not fit into {minutes} minutes")
            return _build(part, own, seed).between(0, minutes * 60)
        case PartSum(parts):
            return reduce(add, (_build(part, minutes, seed) for part in parts))
        case PartSequence(parts):
            shares = _shares(tree, minutes)
            built = (_build(part, n, seed) for part, n in zip(parts, shares, strict=True))
            return reduce(Workload.then, built).between(0, minutes * 60)


def _build_named(named: NamedPart, minutes: int, seed: int) -> Workload:
    pattern = find_pattern(named.name)
    given = dict(named.given)
    seed = _read_seed(given.pop("seed", str(seed)), named.name)
    params, spikes = read_params(pattern, given)
    request = Request(minutes=minutes, seed=seed, spikes=spikes)
    try:
        load = pattern.build(params, request)
    except InputError as error:
        raise error if error.where else error.under(pattern.name) from None
    return load if pattern.draws_spikes else with_spikes(load, spikes, seed)


def _read_seed(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{name}.seed", f"must be a whole number, got {text!r}") from None


def _shares(tree: PartSequence, minutes: int) -> Sequence[int]:
    """Return the minutes of each part; parts without `for` share the rest, the last gets more."""
    fixed = [part.minutes if isinstance(part, TimedPart) else 0 for part in tree.parts]
    open_parts = fixed.count(0)
    left = minutes - sum(fixed)
    if left < open_parts:
        needed = sum(fixed) + open_parts
        problem = f"{write(tree)!r} needs {needed} minutes at least, got {minutes}"
        raise InputError("workload", problem)
    each = left // open_parts if open_parts else 0
    shares = [own or each for own in fixed]
    if open_parts:
        last = max(index for index, own in enumerate(fixed) if not own)
        shares[last] += left - each * open_parts
    return shares
