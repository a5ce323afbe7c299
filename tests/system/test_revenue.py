"""The journey of docs/production.md: examples/revenue through kills, a rescale and a new column.

What comes out must equal a batch query over the same files.
"""

import json
import os
import signal
import sqlite3
import sys
from importlib import import_module
from pathlib import Path
from shutil import copytree
from typing import Any

import duckdb
import pytest
from tests.cli.commands.test_run import nothing_left_of, started
from tests.system.test_open_pipeline import POLICY, WITHIN_S, committed, until
from tests.tools.processes import marked

from penstock.cli.main import main
from penstock.engines.events import RunningEvent
from penstock.runs.run_directory import read_run
from penstock.topics.embedded.topic import Topic

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXAMPLE = Path(__file__).parents[2] / "examples" / "revenue"
ROWS = 60
#: The files of each stage; behind the last one a minute is left out, so that all are closed.
BACKLOG, SECOND, THIRD, FOURTH, LAST = range(24), range(24, 30), range(30, 36), range(36, 42), 61
MARK = "revenue-test"


def write_files(home: Path, numbers: range, **extra: Any) -> None:
    sys.path.insert(0, str(EXAMPLE))
    try:
        make_orders = import_module("make_orders")
    finally:
        sys.path.remove(str(EXAMPLE))
    for number in numbers:
        lines = make_orders.order_lines(number, ROWS)
        whole = [json.dumps({**json.loads(x), **extra}) if x[-1] == "}" else x for x in lines]
        make_orders.write_file(home / "in", number, whole)


def truth(home: Path) -> tuple[list[tuple[Any, ...]], int]:
    """Revenue by customer and minute before the last file, and how many lines are damaged."""
    files = sorted((home / "in").glob("orders-*.json"))
    lines = sum(len(file.read_text().splitlines()) for file in files)
    columns = "{customer: 'varchar', ts: 'timestamptz', amount: 'double'}"
    orders = f"read_ndjson('{home}/in/*.json', columns = {columns}, ignore_errors = true)"
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.execute(f"create table orders as from {orders} where ts is not null")
        (whole,) = database.execute("select count(*) from orders").fetchall()[0]
        query = """
            select customer, strftime(date_trunc('minute', ts), '%Y-%m-%dT%H:%M:%S') as start,
                   count(*), sum(amount)
            from orders where ts < '2026-01-05 19:10:00Z' group by 1, 2 order by 1, 2"""
        return database.execute(query).fetchall(), lines - whole


def in_database(home: Path) -> list[tuple[Any, ...]]:
    if not (home / "revenue.db").is_file():
        return []
    connection = sqlite3.connect(home / "revenue.db")
    try:
        query = "select customer, substr(start, 1, 19), n, amount from revenue order by 1, 2"
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError:  # the first batch has not come yet
        return []
    finally:
        connection.close()


def in_parquet(home: Path) -> list[tuple[Any, ...]]:
    files = committed(home / "revenue")
    if not files:
        return []
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        query = f"""
            select customer, strftime(start::timestamptz, '%Y-%m-%dT%H:%M:%S'), n, sum_amount
            from read_parquet({files}) order by all"""
        return database.execute(query).fetchall()


def end_of(run: Path, topic: str) -> int:
    directory = run / "topics" / topic
    return Topic.open(directory).end if (directory / "topic.json").is_file() else 0


def kill(kind: str) -> None:
    """Kill a process of the run, one that works if there is one."""
    found = [process for process in marked(MARK) if process.kind == kind]
    at_work = [process for process in found if process.state != "S"]
    os.kill((at_work or found)[0].pid, signal.SIGKILL)


def test_the_journey_survives_kills_a_rescale_and_a_new_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_FAULTS", MARK)
    home, run = tmp_path / "shop", tmp_path / "run"
    file = copytree(EXAMPLE, tmp_path / "code") / "revenue.py"
    keep_all = file.read_text().replace('"orders", ORDER)', '"orders", ORDER, keep="1 day")')
    assert "1 day" in keep_all
    file.write_text(keep_all)
    policy = tmp_path / "swing.py"  # up and down, so that there is a rescale on any machine
    policy.write_text(POLICY)
    options = [str(file), "--set", f"data={home}", "--set", "lookup_s=0.004"]
    options += ["--policy", str(policy), "--interval", "2", "--plain", "--out", str(run)]
    options += ["--guard", "cooldown_up_s=off", "--guard", "cooldown_down_s=off"]
    write_files(home, BACKLOG)

    with started(run, *options) as command:
        until(command, lambda: end_of(run, "enriched") > 4 * ROWS)
        command.process.kill()
        command.process.wait(WITHIN_S)
    write_files(home, SECOND)
    with started(run, *options) as command:
        before = end_of(run, "enriched")
        until(command, lambda: end_of(run, "enriched") > before + 2 * ROWS)
        kill("jvm")
        assert command.process.wait(WITHIN_S) != 0
    assert "Traceback" not in command.err
    write_files(home, THIRD)
    with started(run, *options) as command:
        before = end_of(run, "enriched")
        until(command, lambda: end_of(run, "enriched") > before + 2 * ROWS)
        kill("worker")
        rows = (THIRD.stop) * ROWS
        until(command, lambda: end_of(run, "lines") == rows)
        assert main(["stop", str(run), "--timeout", str(WITHIN_S)]) == 0
        assert command.ends()[0] == 143, command.err

    add_column(file)
    capsys.readouterr()
    assert main(["check", str(file), "--against", str(run)]) == 0
    assert "channel" in capsys.readouterr().out
    write_files(home, FOURTH, channel="web")
    write_files(home, range(LAST, LAST + 1), channel="web")
    expected, damaged = truth(home)
    with started(run, *options) as command:
        until(command, lambda: in_database(home) == expected)
        until(command, lambda: in_parquet(home) == expected)
        until(command, lambda: rescales(run) >= {"parse", "enrich", "minutes"})
        assert main(["stop", str(run), "--timeout", str(WITHIN_S)]) == 0
        assert command.ends()[0] == 143, command.err
    assert nothing_left_of(run)

    assert len(expected) == 7 * 6
    assert end_of(run, "late") == 0
    assert end_of(run, "parse-errors") == damaged > 0
    channels = {row["channel"] for row in rows_of(run, "orders")}
    assert channels == {None, "web"}, "rows of before have no channel"


def rescales(run: Path) -> set[str]:
    """Operators whose number of replicas has changed, and really ran."""
    ticks = read_run(run).journal.ticks
    events = [event for tick in ticks for event in tick.status.events]
    return {event.operator for event in events if isinstance(event, RunningEvent)}


def rows_of(run: Path, topic: str) -> list[dict[str, Any]]:
    log = Topic.open(run / "topics" / topic)
    return [row for batch in log.read(log.first, log.end) for row in batch.to_pylist()]


def add_column(file: Path) -> None:
    """Give orders a channel, as somebody would who has read that shops have several."""
    text = file.read_text()
    text = text.replace('amount double"', 'amount double, channel string"')
    text = text.replace(
        '"amount": [float(row["amount"]) for row in rows],',
        '"amount": [float(row["amount"]) for row in rows],\n'
        '            "channel": [row.get("channel") for row in rows],',
    )
    file.write_text(text)
