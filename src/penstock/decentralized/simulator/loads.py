"""The load of every operator over time, in records per step."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.errors import InputError
from penstock.files.text import read_text
from penstock.workloads.trace_csv import Columns, read_table

#: Records per step, by operator and step.
Loads = tuple[tuple[int, ...], ...]


def make_loads(setup: DecentralizedSetup, random: Random) -> Loads:
    """Return the loads of a setup."""
    if setup.load == "trace":
        return read_trace(Path(setup.trace), setup.operators, setup.steps)
    make = _MAKERS[setup.load]
    return tuple(make(setup, random) for _ in range(setup.operators))


def read_trace(path: Path, operators: int, steps: int) -> Loads:
    """Read one row per step: a column `rate` for all operators, or `rate-1`, `rate-2`, ..."""
    lines = read_text(path).splitlines()
    header = [name.strip() for name in (lines[0] if lines else "").split(",")]
    is_shared = "rate" in header
    names = ["rate"] if is_shared else [f"rate-{i}" for i in range(1, operators + 1)]
    rates = [read_table(lines, Columns(rate=name), path.name).starts for name in names]
    if len(rates[0]) < steps:
        hint = f"--steps {len(rates[0])}, or a longer trace"
        raise InputError("--trace", f"has {len(rates[0])} rows, fewer than steps", hint, path.name)
    columns = tuple(tuple(round(rate) for rate in column[:steps]) for column in rates)
    return columns * operators if is_shared else columns


def _make_brownian(setup: DecentralizedSetup, random: Random) -> tuple[int, ...]:
    """A random walk with normal steps, reflected at 0."""
    level, deviation = float(setup.first_load), setup.volatility * setup.first_load
    loads = []
    for _ in range(setup.steps):
        loads.append(round(level))
        level = abs(level + random.gauss(0.0, deviation))
    return tuple(loads)


def _make_ramp(setup: DecentralizedSetup, _random: Random) -> tuple[int, ...]:
    """A straight line from the first load to its multiple."""
    slope = setup.first_load * (setup.growth - 1) / max(1, setup.steps - 1)
    return tuple(round(setup.first_load + slope * step) for step in range(setup.steps))


def _make_growth(setup: DecentralizedSetup, _random: Random) -> tuple[int, ...]:
    """The same factor from each step to the next."""
    factor = setup.growth ** (1 / max(1, setup.steps - 1))
    return tuple(round(setup.first_load * factor**step) for step in range(setup.steps))


def _make_jump(setup: DecentralizedSetup, _random: Random) -> tuple[int, ...]:
    """One change of the level, in the middle."""
    before = setup.steps // 2
    after = round(setup.first_load * setup.growth)
    return (setup.first_load,) * before + (after,) * (setup.steps - before)


_MAKERS: dict[str, Callable[[DecentralizedSetup, Random], tuple[int, ...]]] = {
    "brownian": _make_brownian,
    "ramp": _make_ramp,
    "growth": _make_growth,
    "jump": _make_jump,
}
