"""`penstock state` looks into what operators remember."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from tests.engines.spark.kinds.test_sliced_task import ByHand, word_counts, word_windows

from penstock.cli.main import main
from penstock.pipelines.description import describe
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.time_windows import windows
from penstock.state.handle import State
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that has counted some words."""
    hand = ByHand(tmp_path / "run", word_counts(), "count")
    (tmp_path / "run" / "pipeline.json").write_text(json.dumps(describe(hand.pipeline)))
    for number in range(3):
        hand.put([{"word": word, "at": 0} for word in ("a", "b", "a", None)])
        hand.run(4 * (number + 1), 2)
    return tmp_path / "run"


def test_who_remembers_how_much(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "ls", str(run)]) == 0
    head, line = capsys.readouterr().out.strip().splitlines()
    assert head.split()[:3] == ["operator", "key", "rows"]
    assert line.split()[:2] == ["count", "word"]
    assert main(["state", "ls", str(run), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["operator"], found["slices"], found["batch"]) == ("count", 7, 2)


@pytest.mark.parametrize(("key", "n"), [("a", 6), ("b", 3), ("[null]", 3), ('["a"]', 6)])
def test_what_is_known_by_a_key(
    run: Path, key: str, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", "show", str(run), key, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["n"] == n


def test_what_is_not_known(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "show", str(run), "z"]) == 1
    assert "has no state for that key" in capsys.readouterr().out


def test_all_windows_of_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand = ByHand(tmp_path / "run", word_windows(), "count")
    (tmp_path / "run" / "pipeline.json").write_text(json.dumps(describe(hand.pipeline)))
    hand.put([{"word": "a", "at": second * 1_000_000} for second in (1, 2, 11)])
    hand.run(3, 2)
    assert main(["state", "show", str(tmp_path / "run"), "a", "--json"]) == 0
    assert sorted(row["n"] for row in json.loads(capsys.readouterr().out)) == [1, 2]


def test_damage_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "check", str(run)]) == 0
    assert capsys.readouterr().out == "no damage: count\n"
    for path in (run / "state" / "count" / SEGMENTS).iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        path.write_bytes(content)
    assert main(["state", "check", str(run)]) == 1
    assert "was altered" in capsys.readouterr().out


def test_both_checks_find_a_damaged_record_and_looking_names_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = max((run / "batches" / "count").iterdir())
    newest.write_bytes(b"")
    for command in ("state", "topics"):
        assert main([command, "check", str(run)]) == 1
        assert f"batches/count/{newest.name}" in capsys.readouterr().out
    assert main(["state", "ls", str(run)]) == 2
    told = capsys.readouterr().err
    assert str(newest) in told and "hint: restore the file from a backup" in told


def test_state_without_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = Pipeline("all")
    pipeline.topic("words", "word string, at timestamp", external=True)
    pipeline.sliced("words", "counted", slices=7, name="count")(windows(size_s=10, time="at"))
    hand = ByHand(tmp_path / "run", pipeline, "count")
    (tmp_path / "run" / "pipeline.json").write_text(json.dumps(describe(pipeline)))
    hand.put([{"word": "a", "at": second * 1_000_000} for second in (1, 2, 11)])
    hand.run(3, 2)
    assert main(["state", "check", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["state", "show", str(tmp_path / "run"), "1970-01-01T00:00:00Z", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["n"] == 2
    assert main(["state", "show", str(tmp_path / "run"), "[]"]) == 2
    assert "at least start" in capsys.readouterr().err


def test_what_every_slice_was_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = Pipeline("prices")
    pipeline.topic("sales", "user string", external=True)
    pipeline.topic("rates", "user string", external=True)
    pipeline.topic("priced", "user string")

    @pipeline.sliced(
        ("sales", "rates"), "priced", key="user", broadcast=["rates"], state="n long", slices=4
    )
    def remember(given: Mapping[str, pa.RecordBatch], state: State) -> None:
        """Keep who was named in rates, in every slice."""
        users = given["rates"]["user"]
        state.put({"user": users, "n": pa.array([state.slice] * len(users), pa.int64())})

    hand = ByHand(tmp_path / "run", pipeline, "remember")
    (tmp_path / "run" / "pipeline.json").write_text(json.dumps(describe(pipeline)))
    for name in ("sales", "rates"):
        topic = Topic.open(hand.layout.topic(name))
        with TopicWriter(topic, "test") as writer:
            writer.append(pa.table({"user": ["ann"]}))
    ends = {"at": {"sales": 1, "rates": 1}, "skips": {}}
    plan = hand.mind().plan({"at": hand.at, "skips": {}}, ends)
    hand.sink.commit([hand.task(task) for task in plan.tasks], 0)
    assert main(["state", "check", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["state", "show", str(tmp_path / "run"), "ann", "--json"]) == 0
    assert [row["n"] for row in json.loads(capsys.readouterr().out)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["show", "RUN", "[1, 2, 3]"], "must be a JSON list for the columns word"),
        (["show", "RUN", "a", "--operator", "counts"], "did you mean 'count'"),
        (["ls", "nowhere"], "there is no pipeline.json"),
    ],
)
def test_mistakes(
    run: Path, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", *(str(run) if word == "RUN" else word for word in options)]) == 2
    assert told in capsys.readouterr().err
