"""Files for fuzzed command lines: whole ones, and ways to damage them."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

from penstock.cli.main import main

REPOSITORY = Path(__file__).parents[2]
RECORDED = REPOSITORY / "tests" / "recorded"

#: Texts that no option expects.
TEXTS = (
    *("", " ", "-", "--", "0", "-0", "-1", "0.5", "2.5", "1e16", "1e300", "1e308", "1e999"),
    *("nan", "inf", "-inf", "9" * 20, "9" * 5000, "1" + "0" * 400, "1e-320", "0x10", "1_0"),
    *("٣", "é", "💥", "\ud800", "a\udcffb", "\u202e", "x" * 300, "x" * 5000, "a=b", "=", ":", ","),
    *("../..", "~", "%s", "%(x)s", "{}", "{x}", "\n", "\t", "true", "none", "off", "null"),
    *("source:nan", "source:1e16", "*:1", "source:", ":1", "source:1,source:2", "[]", '{"a": 1}'),
)
#: Paths that cannot be read or written as a file, or not always.
PATHS = (
    *("", ".", "..", "none", "none/at/all", "x" * 300, "x" * 5000, "\ud800", "é.toml", "null"),
    *("full", "/proc/self/mem", "/none/at/all.toml", "empty", "folder", "loop", "binary"),
    *("folder.toml", "folder.py", "folder.parquet", "folder.svg", "binary.toml", "binary.py"),
    *("none.toml", "none.py", "none.parquet", f"{'x' * 300}.toml", f"{'x' * 300}.py"),
    *(
        f"{'x' * 300}.parquet",
        f"{'x' * 300}.svg",
        "none/x.svg",
        "file/x.toml",
        "file/x.svg",
        "file",
    ),
)
#: Devices among them.
DEVICES = ("null", "full")
#: Workloads that make no sense, or hardly any.
LOADS = (
    *("constant(rate=1e300)", "constant(rate=1e16)", "constant(rate=0)", "constant(rate=nan)"),
    *("constant(rate=-1)", "constant * 0", "constant * 1e308", "constant * 1e400", "cosine +"),
    *("(" * 3000 + "constant" + ")" * 3000, "+".join(["constant"] * 300), "constant for 0"),
    *("constant for 1 then constant for 1", f"constant for {'9' * 5000}", "constant for 99999999"),
    *("constant" + " * 1" * 3000, "a(b=c)", 'constant(rate="x', "constant(rate=(1))", "then"),
    *("trace(file=trace.csv)", "trace(file=binary)", "trace(file=folder)", "trace(file=none)"),
    *(f"constant(seed={'9' * 5000})", "random(seed=-1)", "constant(rate=1e-320)", "dns", "pulsar"),
    *("increase(spike_up=nan)", "spikes(every=0)", "cosine(noise=1e300)", "cosine(period=0)"),
)
#: Values of JSON that stand where others should.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1.5, 1e16, 1e300, -1e300, 5e-324, 10**20, 10**400),
    *("", "x", "\ud800", "x" * 5000, [], {}, [[]], [None], {"": 0}, {"a": {"b": {}}}, [1, "x"]),
    *("nan", "source", ["source"], ["read"], {"read": 1e300}, {"read": -1}),
)
#: Numbers that have the form of any other number.
NUMBERS = (0, 1, 2, 0.5, 1.0, 1e-9, 5e-324, 1e9, 1e15, 1e16, 1e17, 1e100, 1e300, 1.7e308, 10**20)
_TOML_VALUES = (
    *(
        "nan",
        "inf",
        "-1",
        "0",
        "1e300",
        "1e16",
        '""',
        '"x"',
        "[]",
        "{}",
        "true",
        "[1, 2]",
        "{a = 1}",
    ),
    *("9" * 30, "9" * 5000, "1979-05-27", '"\\ud800"', "[" * 2000, '["ds2", "ds2"]', "[[]]", "0.5"),
)
_CELLS = ("", "x", "-1", "nan", "inf", "1e300", "1e999", "9" * 400, '"', "\x00", "1,2", "٣", "é")
_BYTES = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"NaN",
    b"1e999",
    b"-",
    b'"',
    b"{",
    b"[" * 100_000,
    b"\n",
    b"=",
)


def make_files(place: Path) -> None:
    """Write what command lines refer to."""
    (place / "empty").write_bytes(b"")
    (place / "file").write_text("text\n")
    (place / "loop").symlink_to("loop")
    for device in DEVICES:  # by links: a command that replaces what it is given spares the device
        (place / device).symlink_to(f"/dev/{device}")
    for folder in ("folder", "folder.toml", "folder.py", "folder.parquet", "folder.svg"):
        (place / folder).mkdir()
    for binary in ("binary", "binary.toml", "binary.py"):
        (place / binary).write_bytes(b"\xff\xfe\x00\x01" * 9)
    lines = (REPOSITORY / "examples" / "run.jsonl").read_text().splitlines(keepends=True)
    (place / "run.jsonl").write_text("".join(lines[:3]))
    (place / "trace.csv").write_text("time,rate\n0,10\n60,30\n120,20\n")
    simulator = REPOSITORY / "src" / "penstock" / "engines" / "simulator"
    shutil.copy(simulator / "pipelines" / "q1.toml", place / "query.toml")
    shutil.copy(simulator / "profiles" / "flink.toml", place / "engine.toml")
    (place / "grid.toml").write_text(GRID)
    for name, text in POLICIES.items():
        (place / f"{name}.py").write_text(text)
    _make_runs(place)
    shutil.copytree(RECORDED / "topic-v1", place / "topic")


def _make_runs(place: Path) -> None:
    _copy_run(place / "spark", "run-spark-v1.toml", "journal-spark-v1.jsonl", 6)
    _copy_run(place / "run", "run-v1.toml", "journal-v1.jsonl", 9)
    shutil.copy(RECORDED / "result-v1.json", place / "run" / "result.json")
    options = ["--jobs", "1", "--out", str(place / "results")]
    assert main(["lab", "run", str(place / "grid.toml"), *options]) == 0


def _copy_run(run: Path, asked: str, journal: str, lines: int) -> None:
    run.mkdir()
    shutil.copy(RECORDED / asked, run / "run.toml")
    kept = (RECORDED / journal).read_text().splitlines(keepends=True)[:lines]
    (run / "journal.jsonl").write_text("".join(kept))


def damage(path: Path, rng: random.Random) -> None:
    """Change a file so that it is wrong, in most cases."""
    data = path.read_bytes()
    if rng.random() < 0.1:
        path.write_bytes(_damage_bytes(data, rng))
    elif path.suffix in (".json", ".jsonl"):
        path.write_bytes(_damage_json(data, rng))
    elif path.suffix == ".toml":
        path.write_bytes(_damage_toml(data, rng))
    elif path.suffix == ".csv":
        path.write_bytes(_damage_csv(data, rng))
    else:
        path.write_bytes(_damage_bytes(data, rng))


def _damage_bytes(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data) + 1)
    end = min(len(data), begin + rng.choice((0, 1, 5, 50, len(data))))
    return data[:begin] + rng.choice(_BYTES) + data[end:]


def _damage_json(data: bytes, rng: random.Random) -> bytes:
    text = data.decode(errors="replace")
    lines = text.splitlines() if data.count(b"\n{") else [text]
    at = rng.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _damage_bytes(data, rng)
    text = json.dumps(_damage_value(value, rng))
    # Python itself would not write a number of so many digits
    lines[at] = text.replace(str(10**400), str(10**400) * 11) if rng.random() < 0.5 else text
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")


def _damage_value(value: Any, rng: random.Random) -> Any:
    """Change one thing somewhere within a value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.1:
            return {
                rng.choice(("", "x", "\ud800", "source")) if k == key else k: v
                for k, v in value.items()
            }
        return value | {key: _damage_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.5:
        at = rng.randrange(len(value))
        return [*value[:at], _damage_value(value[at], rng), *value[at + 1 :]]
    if type(value) in (int, float) and rng.random() < 0.8:
        return rng.choice(NUMBERS)
    return rng.choice(VALUES)


def _damage_toml(data: bytes, rng: random.Random) -> bytes:
    lines = data.decode(errors="replace").splitlines()
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()[:1] not in ("", "#")] or [0])
    key, sign, _ = lines[at].partition("=")
    how = rng.random()
    if how < 0.1:
        del lines[at]
    elif how < 0.15:
        lines.insert(at, lines[at])
    elif how < 0.2 or not sign:
        lines[at] = f"{rng.choice(('x', '[x]', '[operators.x]', '[grid]'))}{sign}1"
    elif rng.random() < 0.6:
        lines[at] = f"{key}= {rng.choice(NUMBERS)}"
    else:
        lines[at] = f"{key}= {rng.choice(_TOML_VALUES)}"
    return "\n".join(lines).encode()


def _damage_csv(data: bytes, rng: random.Random) -> bytes:
    rows = [line.split(",") for line in data.decode(errors="replace").splitlines()]
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice(_CELLS)
    return "\n".join(",".join(each) for each in rows).encode()


GRID = """\
name = "small"
[base]
minutes = 1
workload = "constant(rate=1000)"
[grid]
query = ["q1"]
policy = ["ds2", { policy = "threshold", label = "mine" }]
seeds = 2
"""
_POLICY = """\
import sys
from penstock.core.decision import Decision, Target
from penstock.core.params import Params
from penstock.core.policy import Policy

def decide(history, applied, params):
    {body}

POLICY = Policy(
    name="mine", summary="mine", paper="none", decide=decide, params=Params, measures=("busy",)
)
"""
_TARGET = 'Decision(at=history[-1].at, policy="mine", targets={{{name}: Target({numbers})}})'


def _answering(numbers: str, name: str = "next(iter(history[-1].operators))") -> str:
    return _POLICY.format(body="return " + _TARGET.format(name=name, numbers=numbers))


POLICIES = {
    "raises": _POLICY.format(body="raise ValueError('a\\nb')"),
    "divides": _POLICY.format(body="return 1 / 0"),
    "exits": _POLICY.format(body="sys.exit(3)"),
    "interrupts": _POLICY.format(body="raise GeneratorExit"),
    "recurses": _POLICY.format(body="return decide(history, applied, params)"),
    "none": _POLICY.format(body="return None"),
    "text": _POLICY.format(body="return 'more'"),
    "zero": _answering("1, 0, 'x'"),
    "huge": _answering("1, 10 ** 5000, 'x'"),
    "float": _answering("1, float('nan'), 'x'"),
    "stranger": _answering("1, 2, 'x'", name="'nobody'"),
    "template": _answering("1, 2, 'x', '{missing} {0}', {}"),
    "surrogate": _answering("1, 2, '\\ud800'"),
    "numbers": _answering("1, 2, 'x', '{a}', {'a': object()}"),
    "leaves": "import sys\nsys.exit(3)\n",
    "broken": "def (:\n",
    "import_none": "import there_is_no_such_module\n",
    "no_policy": "POLICY = 3\n",
    "rows": "import pyarrow as pa\n\ndef good(first, due):\n"
    "    return pa.table({'id': range(first, first + len(due))})\n\n"
    "def short(first, due):\n    return pa.table({'id': [1] * (len(due) // 2)})\n\n"
    "def text(first, due):\n    return 'rows'\n\n"
    "def raises(first, due):\n    raise SystemExit(4)\n",
}
