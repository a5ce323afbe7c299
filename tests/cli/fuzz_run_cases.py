"""Fuzzed command lines of commands that look at runs, and of those that need no Spark."""

import random
from collections.abc import Sequence

from tests.cli.fuzz_case import Case, Option
from tests.cli.fuzz_files import PATHS, TEXTS


def _place(rng: random.Random) -> str:
    """A run, in most cases."""
    return rng.choice(("run", "spark") if rng.random() < 0.8 else PATHS)


def _some(rng: random.Random, names: Sequence[str], share: float) -> list[Option]:
    """Some options with any text."""
    return [(name, rng.choice(("2", *TEXTS, *PATHS))) for name in names if rng.random() < share]


def _status(rng: random.Random, number: int) -> Case:
    switches: list[Option] = [("--json", None)] if rng.random() < 0.5 else []
    return Case(number, ["status"], [_place(rng)], switches)


def _stop(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--timeout", rng.choice(("1", *TEXTS)))]
    return Case(number, ["stop"], [_place(rng)], options)


def _check(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--against", _place(rng))] if rng.random() < 0.7 else []
    pipelines = ("images", "q1", "./rows.py", "./none.py", *TEXTS)
    return Case(number, ["check"], [rng.choice(pipelines)], options)


def _report(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--out", rng.choice(("page.html", *PATHS)))]
    return Case(number, ["report"], [_place(rng)], options)


def _top(rng: random.Random, number: int) -> Case:
    return Case(number, ["top"], [_place(rng)], [("--plain", None)])


def _objective(rng: random.Random, number: int) -> Case:
    names = [rng.choice(("ds2", "static", *TEXTS)) for _ in range(2)]
    options: list[Option] = [("--policy", names[0]), ("--tuned", names[1])]
    return Case(number, ["lab", "objective"], ["results"], options, fixed=[("--jobs", "1")])


def _decentralized(rng: random.Random, number: int) -> Case:
    names = ("--operators", "--instances", "--capacity", "--every", "--r", "--up", "--load")
    faults = ("--trace", "--mode", "--message-loss", "--record-delay", "--crashes", "--seed")
    options = _some(rng, (*names, *faults, "--out"), 0.1)
    if rng.random() < 0.1:
        options.append(("--figures", "drawn"))
    return Case(number, ["decentralized", "simulate"], [], options, fixed=[("--steps", "3")])


def _watch(rng: random.Random, number: int) -> Case:
    names = ("--map", "--policy", "--param", "--guard", "--edge", "--objective", "--interval")
    fixed: list[Option] = [("--prometheus", "http://127.0.0.1:9"), ("--once", None)]
    return Case(number, ["watch"], [], _some(rng, (*names, "--out"), 0.2), fixed=fixed)


def _run(rng: random.Random, number: int) -> Case:
    """No pipeline that there is, so that nothing starts."""
    names = ("--policy", "--minutes", "--param", "--guard", "--set", "--master", "--out")
    pipelines = ("./none.py", "./rows.py", *TEXTS)
    return Case(number, ["run"], [rng.choice(pipelines)], _some(rng, names, 0.3))


RUN_MAKERS = (
    *(_status, _status, _stop, _check, _report, _report, _top),
    *(_objective, _decentralized, _watch, _run),
)
