"""Fuzzed command lines: a whole one, changed in a few places, the same for the same number."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.cli.fuzz_case import Case, Option
from tests.cli.fuzz_files import LOADS, NUMBERS, PATHS, POLICIES, TEXTS, damage
from tests.cli.fuzz_run_cases import RUN_MAKERS

from penstock.control.registry import builtin_policies
from penstock.core.guards import Guards

SEED = 14
_BUILTIN = list(builtin_policies())
_FILES = [*(f"./{name}.py" for name in POLICIES), "ds3", "./none.py"]
_GUARDS = [item.name for item in Guards.describe()]

#: Numbers of an engine's profile.
_FIELDS = [
    *("monitor.window_s", "monitor.scrape_s", "monitor.busy_sees", "queues.buffer_s"),
    *("queues.retention_s", "queues.hop_s", "queues.batch_s", "rescaling.pause_s"),
    *("rescaling.warmup_s", "rescaling.delay_s", "loop.interval_s"),
]


def make_case(number: int, files: Path) -> Case:
    """Make a case in the present directory, which is empty; `files` has what may be damaged."""
    rng = random.Random(f"{SEED}:{number}")
    for entry in files.iterdir():
        if entry.name not in ("run", "spark", "results", "topic"):
            Path(entry.name).symlink_to(entry)
    case = rng.choice(_MAKERS)(rng, number)
    for name in ("run", "spark", "results", "topic"):
        if name in case.argv:
            shutil.copytree(files / name, name)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        rng.choice(_CHANGES)(case, rng)
    return case


# --- whole command lines


def _policy(rng: random.Random) -> str:
    return rng.choice(_BUILTIN if rng.random() < 0.75 else _FILES)


def _number(rng: random.Random) -> str:
    return str(rng.choice(NUMBERS)) if rng.random() < 0.8 else rng.choice(TEXTS)


def _load(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(LOADS)
    return f"constant(rate={rng.choice(NUMBERS)})" if rng.random() < 0.5 else "cosine"


def _guard(rng: random.Random) -> str:
    return f"{rng.choice(_GUARDS)}={_number(rng)}"


def _param(rng: random.Random, policy: str) -> str:
    known = builtin_policies().get(policy)
    names = [item.name for item in known.params.describe()] if known else []
    return f"{rng.choice([*names, 'x'])}={_number(rng)}"


def _decide(rng: random.Random, number: int) -> Case:
    policy = _policy(rng)
    options: list[Option] = [("--policy", policy)]
    if rng.random() < 0.4:
        options.append(("--param", _param(rng, policy)))
    if rng.random() < 0.4:
        options.append(("--guard", _guard(rng)))
    if rng.random() < 0.4:
        options.append(("--explain", None))
    stdin = Path("run.jsonl").read_text(errors="surrogateescape")
    return Case(number, ["decide"], [rng.choice(("run.jsonl", "-"))], options, stdin)


def _policies(rng: random.Random, number: int) -> Case:
    switches: list[Option] = [(name, None) for name in ("--json", "--guards") if rng.random() < 0.5]
    return Case(number, ["policies"], [_policy(rng)], switches)


def _workload(rng: random.Random, number: int) -> Case:
    load = rng.choice(("cosine", "constant", "random", *LOADS, *LOADS))
    options: list[Option] = [("--minutes", "3"), ("--seed", "7")]
    options += [(name, None) for name in ("--json", "--list") if rng.random() < 0.3]
    if rng.random() < 0.3:
        options.append(("--param", f"{rng.choice(('rate', 'file', 'noise'))}={rng.choice(TEXTS)}"))
    if rng.random() < 0.05:
        options.append(("--plot", rng.choice(("load.svg", *PATHS))))
    return Case(number, ["workload"], [load], options)


def _simulate(rng: random.Random, number: int) -> Case:
    policy = _policy(rng)
    options: list[Option] = [
        ("--policy", policy),
        ("--query", rng.choice(("q1", "q3", "./query.toml"))),
        ("--engine", rng.choice(("flink", "flink", "./engine.toml"))),
        ("--workload", _load(rng)),
        ("--out", "kept"),
    ]
    for name, value in (
        ("--param", _param(rng, policy)),
        ("--guard", _guard(rng)),
        ("--profile", f"{rng.choice(_FIELDS)}={_number(rng)}"),
        ("--initial", _number(rng)),
        ("--objective", _number(rng)),
        ("--interval", rng.choice(("5", _number(rng)))),
        ("--mode", rng.choice(("reactive", "operator", "x"))),
    ):
        if rng.random() < 0.2:
            options.append((name, value))
    switches = [("--json", None)] if rng.random() < 0.3 else []
    return Case(number, ["simulate"], [], [*options, *switches], fixed=[("--minutes", "1")])


def _replay(rng: random.Random, number: int) -> Case:
    policy = _policy(rng)
    options: list[Option] = [("--policy", policy)]
    if rng.random() < 0.3:
        options.append(("--param", _param(rng, policy)))
    options += [(name, None) for name in ("--json", "--all") if rng.random() < 0.3]
    return Case(number, ["replay"], [rng.choice(("run", "spark"))], options)


def _explain(rng: random.Random, number: int) -> Case:
    options: list[Option] = []
    if rng.random() < 0.5:
        options.append(("--at", rng.choice(("3m", "20", *TEXTS))))
    if rng.random() < 0.5:
        options.append(("--operator", rng.choice(("source", "resize", *TEXTS))))
    return Case(number, ["explain"], [rng.choice(("run", "spark"))], options)


def _lab_run(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--out", rng.choice(("made", "results")))]
    options += [("--json", None)] if rng.random() < 0.5 else []
    return Case(number, ["lab", "run"], ["grid.toml"], options, fixed=[("--jobs", "1")])


def _lab_compare(rng: random.Random, number: int) -> Case:
    options: list[Option] = []
    for name, share in (("--markdown", 0.2), ("--csv", 0.2), ("--html", 0.02)):
        if rng.random() < share:
            options.append((name, rng.choice(("page", *PATHS))))
    options += [("--json", None)] if rng.random() < 0.5 else []
    return Case(number, ["lab", "compare"], ["results"], options, fixed=[("--jobs", "1")])


def _topics(rng: random.Random, number: int) -> Case:
    verb = rng.choice(("ls", "show", "tail", "check"))
    options: list[Option] = [("-n", rng.choice(("3", *TEXTS)))] if verb == "tail" else []
    options += [("--json", None)] if rng.random() < 0.5 else []
    return Case(number, ["topics", verb], ["topic"], options)


def _produce(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--to", "made"), ("--seed", "7"), ("--rate-scale", "1")]
    rows = ("rows.py:good", "rows.py:short", "rows.py:text", "rows.py:raises", "rows.py:none")
    if rng.random() < 0.5:
        options.append(("--rows", rng.choice((*rows, *PATHS))))
    if rng.random() < 0.3:
        options.append(("--arrivals", rng.choice(("poisson", "bursty", *TEXTS))))
    if rng.random() < 0.3:
        options.append(("--speed-up", rng.choice(("10", *TEXTS))))
    fixed: list[Option] = [("--as-fast-as-possible", None), ("--minutes", "1")]
    load = rng.choice(("constant(rate=5)", "constant(rate=5)", "constant(rate=nan)", "then", "x"))
    return Case(number, ["produce"], [load], options, fixed=fixed)


def _state(rng: random.Random, number: int) -> Case:
    verb = rng.choice(("ls", "show", "check"))
    key = [rng.choice(TEXTS)] if verb == "show" else []
    return Case(number, ["state", verb], [rng.choice(("spark", "run")), *key])


def _calibrate(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--out", rng.choice(("made.toml", *PATHS)))]
    return Case(number, ["calibrate"], [rng.choice(("spark", "run"))], options)


def _twin(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--profile", rng.choice(("spark-batches", "./engine.toml", *PATHS)))]
    if rng.random() < 0.3:
        options.append(("--markdown", rng.choice(PATHS)))
    return Case(number, ["twin"], [rng.choice(("spark", "run"))], options, fixed=[("--seeds", "1")])


def _reproduce(rng: random.Random, number: int) -> Case:
    options: list[Option] = [("--data", rng.choice((".", *PATHS))), ("--out", rng.choice(PATHS))]
    paper = rng.choice(("predictive-tweets", "predictive-tweets", *TEXTS))
    fixed: list[Option] = [("--seeds", rng.choice(("0", "-1", "1e16", "x"))), ("--jobs", "1")]
    return Case(number, ["reproduce"], [paper], options, fixed=fixed)


def _nexmark(rng: random.Random, number: int) -> Case:
    options: list[Option] = [
        ("--events", rng.choice(("100", "100", *TEXTS))),
        ("--out", rng.choice(("made.parquet", "made.parquet", *PATHS))),
    ]
    for name, value in (
        ("--kind", rng.choice(("bids", "persons", *TEXTS))),
        ("--rate", rng.choice(("10", *TEXTS))),
        ("--workload", rng.choice(LOADS)),
        ("--hot", rng.choice(("on", *TEXTS))),
    ):
        if rng.random() < 0.3:
            options.append((name, value))
    return Case(number, ["nexmark", "generate"], [], options)


def _pubsub(rng: random.Random, number: int) -> Case:
    if rng.random() < 0.5:
        options: list[Option] = [("--space", rng.choice(PATHS)), ("--out", rng.choice(PATHS))]
        return Case(number, ["pubsub", "keygen"], [], options)
    names = ("--attributes", "--match-rate", "--threads", "--slices", "--seed", "--backend")
    options = [(name, rng.choice(("2", *TEXTS))) for name in names if rng.random() < 0.3]
    sizes = [("--subscriptions", "20"), ("--publications", "3"), ("--rounds", "1")]
    sizes.append(("--kernels-only", None))
    return Case(number, ["pubsub", "bench"], [], [*options, ("--json", None)], fixed=[*sizes])


_MAKERS: tuple[Callable[[random.Random, int], Case], ...] = (
    *(_decide, _decide, _decide, _policies, _workload, _workload, _simulate, _simulate, _replay),
    *(_explain, _lab_run, _lab_compare, _topics, _produce, _state, _calibrate, _twin, _reproduce),
    *(_nexmark, _pubsub, *RUN_MAKERS),
)

# --- changes


def _nothing(_case: Case, _rng: random.Random) -> None:
    """Leave it: its values may be wrong already."""


def _change_value(case: Case, rng: random.Random) -> None:
    given = [n for n, (_, value) in enumerate(case.options) if value is not None]
    if given:
        at = rng.choice(given)
        case.options[at] = (case.options[at][0], rng.choice((*TEXTS, *PATHS)))


def _change_argument(case: Case, rng: random.Random) -> None:
    if case.arguments:
        at = rng.randrange(len(case.arguments))
        case.arguments[at] = rng.choice((*TEXTS, *PATHS, *LOADS))


def _drop(case: Case, rng: random.Random) -> None:
    part: list[str] | list[Option] = rng.choice((case.arguments, case.options))
    if part:
        del part[rng.randrange(len(part))]


def _repeat(case: Case, rng: random.Random) -> None:
    if case.options:
        case.options.append(rng.choice(case.options))


def _add_strange(case: Case, rng: random.Random) -> None:
    known = ("--polcy", "--jsn", "--x", "-x", "--help", "--version", "--minutes", "---", "--json")
    case.options.append((rng.choice(known), rng.choice((None, *TEXTS))))


def _misspell(case: Case, rng: random.Random) -> None:
    at = rng.randrange(len(case.words))
    word = case.words[at]
    case.words[at] = rng.choice((word[:-1], word[::-1], word.upper(), "", *TEXTS))


def _damage_file(case: Case, rng: random.Random) -> None:
    names = [part.rpartition("=")[2].removeprefix("./") for part in case.argv]
    named = [Path(name) for name in names if 0 < len(name) < 99 and "\ud800" not in name]
    files = [path for path in named if path.name != "loop" and path.is_symlink() and path.is_file()]
    # never a file outside the directory of the case, such as one under "../.."
    directories = [path for path in named if path.is_dir() and not path.is_symlink()]
    for directory in (path for path in directories if Path.cwd() in path.resolve().parents):
        files += sorted(path for path in directory.rglob("*") if path.is_file())
    if not files:
        return
    path = rng.choice(files)
    if path.is_symlink():
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    damage(path, rng)
    case.stdin = (
        path.read_text(errors="surrogateescape") if path.name == "run.jsonl" else case.stdin
    )


_CHANGES: tuple[Callable[[Case, random.Random], None], ...] = (
    *(_nothing, _nothing, _nothing, _change_value, _change_value, _change_argument, _drop),
    *(_repeat, _add_strange, _misspell, *[_damage_file] * 10),
)
