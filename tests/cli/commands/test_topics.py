"""The command `penstock topics`."""

import json
import time
from pathlib import Path

import pytest
from tests.topics.factories import SCHEMA, fill

from penstock.cli.main import main
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.topic import Topic

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two topics."""
    images = Topic.create(tmp_path / "run" / "topics" / "images", SCHEMA)
    fill(images, 3, 4, 5, writer="producer", at=time.time() - 600)
    images.remove_before(3)
    save_position(images.directory, "resize", 5)
    save_position(images.directory, "label", 12)
    Topic.create(tmp_path / "run" / "topics" / "tags", SCHEMA, Retention(seconds=600))
    return tmp_path / "run"


def lines(capsys: Capture) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_ls_of_a_run_a_folder_or_a_topic(run: Path, capsys: Capture) -> None:
    for place in (run, run / "topics"):
        assert main(["topics", "ls", str(place)]) == 0
        head, images, tags = lines(capsys)
        assert head[:6] == ["topic", "rows", "first", "end", "size", "commits"]
        assert images[:4] == ["images", "9", "3", "12"] and images[6] == "2"
        assert " ".join(images[7:]) == "10 min ago resize, 7 rows behind"
        assert tags[:4] == ["tags", "0", "0", "0"] and tags[-2:] == ["-", "-"]
    assert main(["topics", "ls", str(run / "topics" / "tags")]) == 0
    assert len(lines(capsys)) == 2


@pytest.mark.parametrize("verb", ["ls", "show"])
def test_figures_for_machines(run: Path, verb: str, capsys: Capture) -> None:
    assert main(["topics", verb, str(run), "--json"]) == 0
    images, tags = json.loads(capsys.readouterr().out)
    size = sum(p.stat().st_size for p in (run / "topics" / "images" / "segments").iterdir())
    assert images.pop("newest_at") < time.time() - 599
    assert images == {
        "name": "images",
        "directory": str(run / "topics" / "images"),
        "schema": "id long, text string",
        "keep": "read",
        "rows": 9,
        "first": 3,
        "end": 12,
        "bytes": size,
        "commits": 2,
        "readers": {"label": {"offset": 12, "behind": 0}, "resize": {"offset": 5, "behind": 7}},
        "writers": {"producer": 2},
    }
    assert (tags["keep"], tags["rows"], tags["newest_at"]) == ("10 minutes", 0, None)


def test_show_tells_columns_readers_and_writers(run: Path, capsys: Capture) -> None:
    assert main(["topics", "show", str(run / "topics" / "images")]) == 0
    shown = [" ".join(line) for line in lines(capsys)]
    for expected in (
        "rows 9, from 3 to 12",
        "newest 10 min ago, batch 2 of producer",
        "keep read",
        "text string",
        "_event timestamp not null",
        "resize 5 7",
        "producer 2",
    ):
        assert expected in shown


def test_tail_shows_the_last_rows_with_their_numbers(run: Path, capsys: Capture) -> None:
    assert main(["topics", "tail", str(run / "topics" / "images"), "-n", "6"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["row", "id", "text", "_event"]
    assert rows[-1] == " 11  11  row 11  1970-01-01 00:00:11.000000"
    assert [row.split()[0] for row in rows] == ["6", "7", "8", "9", "10", "11"]


def test_tail_for_machines_begins_at_the_first_row_there(run: Path, capsys: Capture) -> None:
    assert main(["topics", "tail", str(run / "topics" / "images"), "-n", "99", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["offset"] for row in rows] == [row["id"] for row in rows] == list(range(3, 12))
    assert rows[0]["_event"] == "1970-01-01T00:00:03+00:00"


def test_tail_follows_also_over_rows_that_were_removed(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic.open(run / "topics" / "images")
    sleeps: list[float] = []

    def meanwhile(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 2:
            fill(topic, 2)
        if len(sleeps) == 3:
            fill(topic, 2, 2).remove_before(16)
        if len(sleeps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", meanwhile)
    assert main(["topics", "tail", str(topic.directory), "-n", "1", "--follow"]) == 130
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["row", "11", "12", "13", "16", "17"]


def test_check_names_every_damage_and_exits_with_1(run: Path, capsys: Capture) -> None:
    assert main(["topics", "check", str(run)]) == 0
    assert capsys.readouterr().out == "images: no damage\ntags: no damage\n"
    topic = Topic.open(run / "topics" / "images")
    one, other = (commit.segments[0].file for commit in topic.commits(3, 12))
    (topic.directory / "segments" / one).unlink()
    (topic.directory / "segments" / other).write_bytes(b"")
    assert main(["topics", "check", str(run)]) == 1
    head, *rows = [" ".join(line) for line in lines(capsys)]
    assert head == "topic file rows problem"
    assert rows[0] == f"images segments/{one} 3 to 7 missing"
    assert rows[1].startswith(f"images segments/{other} 7 to 12 has 0 bytes, expected ")
    assert main(["topics", "check", str(run), "--json"]) == 1
    images, tags = json.loads(capsys.readouterr().out)
    assert images["damage"][0] == {
        "file": f"segments/{one}", "problem": "missing", "first": 3, "end": 7,
    }  # fmt: skip
    assert tags == {"topic": "tags", "damage": []}


def test_damage_that_another_verb_meets_is_one_line_and_exit_code_1(
    run: Path, capsys: Capture
) -> None:
    (run / "topics" / "images" / "topic.json").write_text("{")
    assert main(["topics", "ls", str(run)]) == 1
    captured = capsys.readouterr()
    problem = "topic images: topic.json: is no description of a topic"
    assert (captured.out, captured.err) == ("", f"error: {problem}\n")
    assert main(["topics", "check", str(run)]) == 1
    assert "images  topic.json  unknown  is no description" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["ls", "nowhere"], "DIR: there is no directory 'nowhere'"),
        (["check", "{run}/topics/images/segments"], "there is no topic in"),
        (["tail", "{run}"], "DIR: contains 2 topics\nhint: choose one: images, tags"),
        (["tail", "{run}/topics/images", "-n", "-1"], "-n: must be at least 0, got -1"),
    ],
)
def test_mistakes_are_named(run: Path, argv: list[str], problem: str, capsys: Capture) -> None:
    assert main(["topics", *(word.format(run=run) for word in argv)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and problem in captured.err
