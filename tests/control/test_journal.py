"""The journal: every tick comes back, damage is named, old files stay readable."""

import json
from pathlib import Path

import pytest

from penstock.control.journal import (
    JournalWriter,
    read_journal,
    tick_from_json,
    tick_to_json,
)
from penstock.control.loop import Tick
from penstock.control.scores import score
from penstock.errors import InputError
from penstock.lab.simulation import RunSpec, prepare

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def ticks() -> list[Tick]:
    """Half an hour with changes, pauses, drops and a cool-down slept through."""
    spec = RunSpec(policy="dhalion", minutes=30, initial=2, profile={"queues.retention_s": 100})
    return list(prepare(spec).ticks())


@pytest.fixture
def path(ticks: list[Tick], tmp_path: Path) -> Path:
    """A journal of the first ticks."""
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path, {"policy": "dhalion"}) as journal:
        for tick in ticks[:5]:
            journal.write(tick)
    return path


def test_every_tick_of_a_run_comes_back(ticks: list[Tick]) -> None:
    assert {event.kind for tick in ticks for event in tick.status.events} == {
        "running", "resumed", "dropped",
    }  # fmt: skip
    assert any(tick.decision and tick.decision.is_change for tick in ticks)
    for tick in ticks:
        written = json.loads(json.dumps(tick_to_json(tick)))
        again = tick_from_json(written)
        assert tick_to_json(again) == written
        assert again.snapshot == tick.snapshot
        assert again.decision == tick.decision
        assert again.status.events == tick.status.events
        assert (again.at, again.applied, again.error) == (tick.at, tick.applied, tick.error)


def test_a_change_is_written_with_what_it_is_expected_to_carry(ticks: list[Tick]) -> None:
    tick = next(tick for tick in ticks if tick.applied)
    (name, wanted), *_ = tick.decision.changes.items()
    one = tick.snapshot.operators[name].replica_capacity
    assert tick_to_json(tick)["expected"][name] == pytest.approx(one * wanted)


def test_the_file_gives_back_header_and_ticks(path: Path, ticks: list[Tick]) -> None:
    journal = read_journal(path)
    assert journal.run == {"policy": "dhalion"}
    assert [tick.at for tick in journal.ticks] == [tick.at for tick in ticks[:5]]


def test_a_last_line_that_was_cut_is_left_out(path: Path) -> None:
    whole = path.read_bytes()
    for lost in (1, 2, 100):
        path.write_bytes(whole[:-lost])
        assert len(read_journal(path).ticks) == 4


def test_a_header_alone_is_a_journal_without_ticks(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path, {}):
        pass
    assert read_journal(path).ticks == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"at": 15.0,', ":3: not JSON"),
        ('{"at": 15.0}', ":3: records: missing"),
        ('{"at": NaN}', ":3: NaN is not a number"),
    ],
)
def test_a_broken_line_is_named(path: Path, line: str, problem: str) -> None:
    lines = path.read_text().splitlines()
    lines[2] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as error:
        read_journal(path)
    assert str(error.value).startswith(f"{path}{problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a journal: its first line has no header"),
        ('{"at": 1.0}\n', "is not a journal: its first line has no header"),
        ('{"version": 2, "run": {}}\n', "version: cannot read version 2, only 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_journal(path)


def test_a_journal_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such journal"):
        read_journal(tmp_path / "journal.jsonl")


def test_a_journal_recorded_by_version_1_is_read() -> None:
    journal = read_journal(RECORDED / "journal-v1.jsonl")
    assert journal.run["policy"] == "dhalion" and len(journal.ticks) == 44
    changes = [(tick.at, tick.decision.changes) for tick in journal.ticks if tick.applied]
    assert changes[:2] == [(15, {"source": 8}), (195, {"mapper": 5})]
    kinds = {event.kind for tick in journal.ticks for event in tick.status.events}
    assert kinds == {"running", "resumed", "dropped"}
    result = json.loads((RECORDED / "result-v1.json").read_text())
    again = score(journal.ticks, journal.run["objective_s"])
    assert again == {name: result[name] for name in again}
