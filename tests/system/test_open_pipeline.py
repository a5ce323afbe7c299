"""From files to files and a database, through a kill and rescales: equal to a batch query.

One pipeline has everything, so that two starts of Spark serve all assertions.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands.test_run import Command, nothing_left_of, started

from penstock.cli.main import main
from penstock.engines.events import RunningEvent
from penstock.runs.run_directory import read_run
from penstock.topics.embedded.topic import Topic

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PIPELINE = Path(__file__).with_name("open_pipeline.py")
BEGIN = datetime(2024, 2, 29, 23, 59, 50, tzinfo=UTC)
FORMATS = ("json", "csv", "parquet", "text")
ROWS, FILES = 40, 5
WITHIN_S = 600.0
#: One replica, then three, then one ...
POLICY = """
from penstock.core.decision import Target
from penstock.core.params import Params
from penstock.core.policy import Policy, each_operator
from penstock.core.reasons import Reason

def decide(history, applied, params):
    def target(op):
        wanted = 3 if op.parallelism == 1 else 1
        return Target(op.parallelism, wanted, Reason.FIXED, "{wanted}", {"wanted": wanted})
    return each_operator("swing", history[-1], target)

POLICY = Policy(
    name="swing", summary="up and down", paper="none", decide=decide, params=Params, reacts=False
)
"""


def rows_of(first: int) -> list[dict[str, Any]]:
    """Old event times, out of order; every tenth row has none."""
    return [
        {
            "id": number,
            "ts": None if number % 10 == 7 else BEGIN + timedelta(seconds=number * 37 % 600),
            "customer": f"c{number % 7}",
            "amount": number % 500 / 4,
        }
        for number in range(first, first + ROWS)
    ]


def write_file(home: Path, kind: str, number: int) -> None:
    """Write a file of a format aside, then show it at once, as Spark wants it."""
    rows = rows_of((FORMATS.index(kind) * 100 + number) * ROWS)
    aside, path = home / f"{kind}-{number}.tmp", home / kind / f"{number}.{kind}"
    path.parent.mkdir(exist_ok=True)
    stamps = [row["ts"].strftime("%Y-%m-%dT%H:%M:%SZ") if row["ts"] else None for row in rows]
    texts = [{**row, "ts": stamp} for row, stamp in zip(rows, stamps, strict=True)]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), aside)
    elif kind == "json":
        aside.write_text("".join(json.dumps(row) + "\n" for row in texts))
    else:
        mark = "," if kind == "csv" else "|"
        lines = (mark.join("" if v is None else str(v) for v in row.values()) for row in texts)
        aside.write_text("".join(f"{line}\n" for line in lines))
    aside.replace(path)


def batch_query(home: Path) -> list[tuple[Any, ...]]:
    """The same files, read at once: (id, event time, customer, cents)."""
    text = "epoch_us(try_cast(ts as timestamp))"  # written with a Z, so this is UTC
    names = "names = ['id', 'ts', 'customer', 'amount'], header = false, all_varchar = true"
    sources = {
        f"read_json('{home}/json/*')": "epoch_us(ts)",
        f"read_csv('{home}/csv/*', {names})": text,
        f"read_parquet('{home}/parquet/*')": "epoch_us(ts)",
        f"read_csv('{home}/text/*', delim = '|', {names})": text,
    }
    columns = "id::bigint as id, {} as ts, customer, (100 * amount::double)::bigint as cents"
    each = (f"select {columns.format(time)} from {source}" for source, time in sources.items())
    query = f"select * from ({' union all '.join(each)}) order by id"
    return duckdb.sql(query).fetchall()


def committed(directory: Path) -> list[str]:
    """Files that Spark's own log of a file sink names: those of killed attempts are not there."""
    found = set()
    for log in (directory / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            found.add(unquote(urlsplit(json.loads(line)["path"]).path))
    return sorted(found)


def written(home: Path, kind: str) -> list[tuple[Any, ...]]:
    files = committed(home / f"out-{kind}")
    if not files:
        return []
    columns = "id, epoch_us(ts), customer, cents"
    return duckdb.sql(f"select {columns} from read_{kind}({files}) order by id").fetchall()


def stored(home: Path, query: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(home / "orders.db")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("OPEN_PIPELINE_HOME", str(tmp_path))
    (tmp_path / "swing.py").write_text(POLICY)
    with sqlite3.connect(tmp_path / "orders.db") as database:
        database.execute("create table orders (batch, id, customer, cents)")
        database.execute("create table attempts (batch, ids)")
    database.close()
    for kind in FORMATS:
        for number in range(FILES):
            write_file(tmp_path, kind, number)
    yield tmp_path


def until(command: Command, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert command.process.poll() is None, command.err
        assert time.monotonic() < deadline, command.err
        time.sleep(0.2)


def status(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["status", str(run), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_files_come_in_and_go_out_once_whatever_is_killed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = home / "run"
    options = [str(PIPELINE), "--policy", str(home / "swing.py"), "--interval", "2"]
    options += ["--guard", "cooldown_up_s=off", "--guard", "cooldown_down_s=off"]
    options += ["--guard", "hold_while_draining=off", "--plain", "--out", str(run)]

    with started(run, *options) as command:  # its database egress kills it
        assert command.process.wait(WITHIN_S) == -9, command.err
    assert "production mode, until it is stopped" in command.err
    assert nothing_left_of(run)
    code, found = status(run, capsys)
    assert (code, found["state"]) == (3, "killed")

    with started(run, *options) as command:  # the same command goes on
        command.until_told('"snapshot"')
        for kind in FORMATS:  # what comes now is offered load
            write_file(home, kind, FILES)
        expected = batch_query(home)
        until(command, lambda: count(home) >= len(expected))
        until(command, lambda: has_run_with(run, 1) and has_run_with(run, 3))
        command.until_told('"ingests"')
        code, found = status(run, capsys)
        assert (code, found["state"], found["resumes"]) == (0, "running", 1)
        assert found["operators"]["price"]["queue"] == 0
        taken = {name: ingest["rows"] for name, ingest in found["ingests"].items()}
        until(command, lambda: len(written(home, "parquet")) >= len(expected))
        until(command, lambda: len(written(home, "json")) >= len(expected))
        assert main(["stop", str(run), "--timeout", str(WITHIN_S)]) == 0
        assert command.ends()[0] == 143, command.err
    assert "Traceback" not in command.err
    assert status(run, capsys)[0] == 3

    assert len(expected) == len(FORMATS) * (FILES + 1) * ROWS
    assert taken == dict.fromkeys(taken, (FILES + 1) * ROWS)
    assert written(home, "parquet") == expected
    assert written(home, "json") == expected
    plain = [(number, customer, cents) for number, _, customer, cents in expected]
    assert stored(home, "select id, customer, cents from orders order by id") == plain
    attempts = [
        ids for batch, ids in stored(home, "select * from attempts") if batch == killed_at(home)
    ]
    assert len(attempts) >= 2  # the batch came again, with the very same rows
    assert len(set(attempts)) == 1
    check_event_times(run, expected)
    check_decisions(run)


def has_run_with(run: Path, replicas: int) -> bool:
    event = f'"kind":"running","operator":"price","replicas":{replicas}'
    return event in (run / "journal.jsonl").read_text()


def count(home: Path) -> int:
    return int(stored(home, "select count(*) from orders")[0][0])


def killed_at(home: Path) -> int:
    """The first batch with rows: after it the driver was killed."""
    return int(stored(home, "select min(batch) from orders")[0][0])


def check_event_times(run: Path, expected: list[tuple[Any, ...]]) -> None:
    """The named column where it has a value, else the newest one beside it."""
    topic = Topic.open(run / "topics" / "orders")
    found = {
        number: stamp
        for batch in topic.read(topic.first, topic.end)
        for number, stamp in zip(
            batch["id"].to_pylist(), batch["_event"].cast(pa.int64()).to_pylist(), strict=True
        )
    }
    assert len(found) == len(expected)
    known = {ts for _, ts, _, _ in expected if ts is not None}
    for number, ts, _, _ in expected:
        assert found[number] == ts if ts is not None else found[number] in known


def check_decisions(run: Path) -> None:
    """Replicas changed, and latency is that of the pipeline, though events are from 2024."""
    ticks = read_run(run).journal.ticks
    events = [event for tick in ticks for event in tick.status.events]
    assert {e.replicas for e in events if isinstance(e, RunningEvent)} >= {1, 3}
    snapshots = [tick.snapshot for tick in ticks if tick.snapshot is not None]
    assert {snapshot.topology.sources for snapshot in snapshots} == {("price",)}
    assert max(snapshot.offered.get("price", 0.0) for snapshot in snapshots) > 0
    latency = [value for tick in ticks for seen in tick.status.latency.values() for value in [seen]]
    assert latency
    assert max(seen.percentile(99) for seen in latency) < 3600
