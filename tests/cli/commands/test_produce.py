"""The command `penstock produce`."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.tools.kafka_mock import mock_kafka

from penstock.cli.main import main
from penstock.runs.topic_production import plain_rows
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.offset_ranges import list_ranges
from penstock.topics.kafka.partition_offsets import PartitionOffsets
from penstock.topics.kafka.range_reader import RangeReader
from penstock.topics.kafka.value_formats import make_decoder
from penstock.topics.schema import EVENT, schema_text

Capture = pytest.CaptureFixture[str]
AT_ONCE = ["--minutes", "1", "--as-fast-as-possible"]

ROWS = """
import pyarrow as pa
from penstock import Pipeline

pipeline = Pipeline("p")
pipeline.topic("out", "n long, at timestamp")

@pipeline.produces("out")
def numbers(first_id, due):
    return {"n": pa.array(range(first_id, first_id + len(due)), pa.int64()), "at": due}

def broken(first_id, due):
    return {"n": first_id / 0}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "topics" / "numbers"


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.py"
    path.write_text(ROWS)
    return path


def rows(place: Path) -> pa.Table:
    topic = Topic.open(place)
    return pa.Table.from_batches(topic.read(0, topic.end))


def test_as_fast_as_possible(place: Path, capsys: Capture) -> None:
    argv = ["produce", "constant(rate=500)", "--to", str(place), *AT_ONCE, "--seed", "3"]
    before = time.time()
    assert main([*argv, "--json"]) == 0
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert shown["records"] == 30_000 and shown["worst_lag_s"] is None
    assert shown["rate"] == pytest.approx(30_000 / shown["seconds"])
    assert Path(shown["topic"]) == place.resolve()
    assert "100 %, 30000 of 30000" in captured.err
    found = rows(place)
    assert found.drop_columns([EVENT]).equals(plain_rows(3)(0, pa.nulls(30_000)))
    stamps = found.column(EVENT).cast(pa.int64()).to_numpy() / 1e6
    assert before - 60 <= stamps[0] and stamps[-1] <= time.time()
    assert stamps[-1] - stamps[0] == pytest.approx(60 - 1 / 500, abs=1e-5)


def test_in_time_with_speed_and_scale(place: Path, capsys: Capture) -> None:
    argv = ["produce", "constant(rate=1e4)", "--to", str(place), "--minutes", "1"]
    began = time.monotonic()
    assert main([*argv, "--speed-up", "120", "--rate-scale", "0.02"]) == 0
    assert 0.49 <= time.monotonic() - began < 5
    assert Topic.open(place).end == 100
    head, figures = capsys.readouterr().out.splitlines()
    assert head.split() == ["records", "seconds", "records/s", "worst", "lag"]
    records, seconds, rate, lag, unit = figures.split()
    assert (records, unit) == ("100", "s")
    assert 0.49 <= float(seconds) < 5 and float(rate) <= 205 and 0 < float(lag) < 4


def test_the_same_command_goes_on(place: Path, capsys: Capture) -> None:
    argv = ["produce", "constant(rate=100)", "--to", str(place), *AT_ONCE, "--json"]
    main(argv)
    longer = [*argv[:4], "--minutes", "2", *argv[6:]]
    capsys.readouterr()
    main(longer)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["records"] == 6000
    assert "6000 of 12000 exist already" in captured.err
    assert rows(place).column("id").to_pylist() == list(range(12_000))
    main(longer)
    assert json.loads(capsys.readouterr().out)["records"] == 0


def test_rows_of_ones_own(place: Path, rows_file: Path, capsys: Capture) -> None:
    argv = ["produce", "constant(rate=10)", "--to", str(place), *AT_ONCE]
    assert main([*argv, "--rows", f"{rows_file}:numbers", "--arrivals", "poisson"]) == 0
    found = rows(place)
    assert schema_text(found.schema) == "n long, at timestamp, _event timestamp not null"
    assert found.column("at").equals(found.column(EVENT))
    assert found.column("n").to_pylist() == list(range(len(found)))
    assert 500 < len(found) < 700 and len(found) != 600
    assert "100 %" in capsys.readouterr().err


def test_arrivals_are_the_workloads_own_unless_told(place: Path, capsys: Capture) -> None:
    for kind, exact in (([], True), (["--arrivals", "bursty"], False)):
        to = place.with_name(f"n{exact}")
        main(["produce", "constant(rate=10)", "--to", str(to), *AT_ONCE, *kind, "--json"])
        assert (json.loads(capsys.readouterr().out)["records"] == 600) is exact


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--arrivals", "poison"], "--arrivals: unknown arrival process 'poison'"),
        (["--rows", "rows"], "--rows: must be FILE.py:function, got 'rows'"),
        (["--rows", "none.py:f"], "file: there is no file 'none.py'"),
        (["--rows", "{rows}:number"], "{rows}: --rows: there is no function 'number'"),
        (["--rows", "{rows}:broken"], "{rows}:13: broken: cannot be made: ZeroDivisionError"),
        (["--speed-up", "0"], "speed_up: must be finite and above 0"),
        (["--rate-scale", "-1"], "factor: must be finite and at least 0"),
        (["--minutes", "0"], "minutes: must be from 1"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(
    more: list[str], message: str, place: Path, rows_file: Path, capsys: Capture
) -> None:
    argv = [part.replace("{rows}", str(rows_file)) for part in more]
    assert main(["produce", "constant", "--to", str(place), *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and not place.exists()
    assert f"error: {message.replace('{rows}', str(rows_file))}" in captured.err


def test_a_topic_with_other_columns_is_left_alone(
    place: Path, rows_file: Path, capsys: Capture
) -> None:
    argv = ["produce", "constant(rate=1)", "--to", str(place), *AT_ONCE]
    main(argv)
    assert main([*argv, "--rows", f"{rows_file}:numbers"]) == 2
    assert "column 'n' (long) is missing" in capsys.readouterr().err
    assert Topic.open(place).end == 60


def test_a_topic_that_somebody_fills_is_refused_in_one_line(place: Path, capsys: Capture) -> None:
    argv = ["produce", "constant(rate=1)", "--to", str(place), *AT_ONCE]
    main(argv)
    capsys.readouterr()
    with TopicWriter(Topic.open(place), "other"):
        assert main(argv) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert "numbers" in line


def test_rows_go_to_kafka(capsys: Capture) -> None:
    with mock_kafka() as broker:
        broker.write("orders", 0, [b"{}"])
        argv = ["produce", "constant(rate=500)", "--to", broker.url("orders"), *AT_ONCE]
        assert main(argv) == 0
        captured = capsys.readouterr()
        figures = json.loads(captured.out)
        address = parse_address(broker.url("orders"))
        offsets = PartitionOffsets(address, ClientSettings())
        ends = offsets.end(offsets.list_partitions())
        reader = RangeReader(address, ClientSettings())
        ranges = list_ranges({0: 1}, ends)
        blocks = [block for part in ranges for block in reader.read(part)]
        decoder = make_decoder("json", "id long, value double, key long, _event timestamp")
        ids = sorted(n for block in blocks for n in decoder.decode(block)["id"].to_pylist())
        reader.close()
    assert "100 %, 30000 of 30000" in captured.err
    assert (figures["records"], figures["partitions"]) == (30_000, 4)
    assert figures["wanted_rate"] is None and not figures["is_interrupted"]
    assert ids == list(range(30_000))


def test_kafka_gets_rows_when_they_are_due(capsys: Capture) -> None:
    with mock_kafka() as broker:
        broker.write("orders", 0, [b"{}"])
        argv = ["produce", "constant(rate=200)", "--to", broker.url("orders"), "--minutes", "0.05"]
        assert main(argv) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["records"] == 600
    assert figures["wanted_rate"] == pytest.approx(200)
    # a busy machine is late at the end, never early
    assert figures["rate"] < 201
    assert figures["worst_lag_s"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "kafka://a:1/b/c"], "--to: topic 'b/c' is not a name that Kafka allows"),
        (["--to", "kafka://a:1/b", "--partitions", "0"], "--partitions: must be at least 1"),
        (["--to", "kafka://a:1/b", "--properties", "no"], "properties: "),
        (["--to", "topics/a", "--partitions", "3"], "--partitions: is for Kafka topics"),
    ],
)
def test_wrong_options_of_kafka(options: list[str], message: str, capsys: Capture) -> None:
    assert main(["produce", "cosine", *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {message}")
    assert captured.out == ""


def test_an_existing_topic_keeps_its_partitions(capsys: Capture) -> None:
    with mock_kafka() as broker:
        broker.write("orders", 0, [b"{}"])
        argv = ["produce", "cosine", "--to", broker.url("orders"), "--partitions", "7"]
        assert main(argv) == 2
    assert "--partitions: must be 4, as topic orders has, got 7" in capsys.readouterr().err
