"""The command `penstock nexmark`."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from penstock.cli.main import main
from penstock.nexmark import export as generating
from penstock.nexmark.event_order import KINDS, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import events, rows
from penstock.nexmark.times import FixedRate, WorkloadClock
from penstock.workloads.registry import make_workload

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several parts, whose borders no kind keeps to."""
    monkeypatch.setattr(generating, "PART", 777)


def generate(out: Path, *options: str, count: int = 2000) -> int:
    return main(["nexmark", "generate", "--events", str(count), "--out", str(out), *options])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_file_of_one_kind_holds_its_rows(kind: EventKind, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert generate(out, "--kind", kind.name) == 0
    assert pq.read_table(out) == rows(kind, 0, 2000 * kind.share // 50, StreamSettings())


def test_a_file_of_all_kinds_holds_one_row_an_event(tmp_path: Path) -> None:
    out = tmp_path / "events.parquet"
    assert generate(out) == 0
    assert pq.read_table(out) == events(0, 2000, StreamSettings())
    query = f"""select event_type, count(*), count(person.id), count(auction.id),
        count(bid.price) from '{out}' group by 1 order by 1"""
    with duckdb.connect(config={"threads": 1}) as database:
        counts = database.execute(query).fetchall()
    assert counts == [(0, 40, 40, 0, 0), (1, 120, 0, 120, 0), (2, 1840, 0, 0, 1840)]


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        (["--hot", "off"], StreamSettings(hot=False)),
        (["--hot", "on", "--rate", "200"], StreamSettings(clock=FixedRate(200))),
        (
            ["--workload", "cosine * 0.01"],
            StreamSettings(clock=WorkloadClock(make_workload("cosine") * 0.01)),
        ),
    ],
)
def test_other_settings(options: list[str], setting: StreamSettings, tmp_path: Path) -> None:
    out = tmp_path / "bids.parquet"
    assert generate(out, "--kind", "bids", *options) == 0
    made = pq.read_table(out)
    assert made == rows(KINDS["bids"], 0, 1840, setting)
    assert made != rows(KINDS["bids"], 0, 1840, StreamSettings())


def test_the_same_options_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one.parquet", "two.parquet"):
        assert generate(tmp_path / name) == 0
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_what_is_in_it_for_people_and_machines(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "bids.parquet"
    assert generate(out, "--kind", "bids") == 0
    said = capsys.readouterr()
    head, line = said.out.splitlines()
    assert head.split()[:3] == ["file", "events", "bids"]
    assert line.split()[:3] == [str(out), "2,000", "1,840"]
    assert "100 %, 2000 of 2000" in said.err
    assert generate(out, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.pop("seconds") > 0
    assert shown == {
        "file": str(out),
        "events": 2000,
        "rows": {"persons": 40, "auctions": 120, "bids": 1840},
        "event_time_s": 0.2,
        "bytes": out.stat().st_size,
    }


def test_a_kind_that_so_few_events_do_not_hold(tmp_path: Path) -> None:
    assert generate(tmp_path / "none.parquet", "--kind", "persons", count=10) == 0
    none = pq.read_table(tmp_path / "none.parquet")
    assert len(none) == 0 and none.column_names[:2] == ["id", "name"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--events", "0"], "--events: must be from 1 to 10,000,000,000, got 0"),
        (["--events", "-5"], "--events: must be from 1 to 10,000,000,000, got -5"),
        (["--kind", "bid"], "--kind: unknown kind of event 'bid'\nhint: did you mean 'bids'?"),
        (["--rate", "0"], "rate: must be from 0.01 to 1e9 events/s, got 0"),
        (["--rate", "5", "--workload", "cosine"], "--rate: cannot be combined with --workload"),
        (["--workload", "cosin"], "workload: unknown workload 'cosin'"),
        (["--out", "bids.csv"], "--out: must end with .parquet, got 'bids.csv'"),
        (["--out", "nowhere/bids.parquet"], "--out: there is no directory 'nowhere'"),
    ],
)
def test_what_can_be_mended_is_told_and_nothing_is_written(
    options: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate(Path("bids.parquet"), *options) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--events", "many"], ["--hot", "maybe"], ["--rate", "fast"]])
def test_what_no_option_can_be(option: list[str], tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        generate(tmp_path / "bids.parquet", *option)
    assert option[0] in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_an_interrupted_file_is_not_there_and_the_one_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = tmp_path / "bids.parquet"
    out.write_text("before")
    made = generating.events

    def interrupted(first: int, end: int, setting: StreamSettings) -> object:
        if first > 777:
            raise KeyboardInterrupt
        return made(first, end, setting)

    monkeypatch.setattr(generating, "events", interrupted)
    assert generate(out) == 130
    assert [file.name for file in tmp_path.iterdir()] == [out.name]
    assert out.read_text() == "before"
    assert "the same command resumes" not in capsys.readouterr().err


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    command = ["nexmark", "generate", "--events", "20000", "--out", str(tmp_path / "a.parquet")]
    script = f"import sys; from penstock.cli.main import main; sys.exit(main({command!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=bounded,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1].endswith("cannot be written: File too large")
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())
