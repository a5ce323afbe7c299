"""The journal: every tick comes back, damage is named, old files stay readable."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.control.rig import SlowEngine, policy_of, wants

from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.engines.port import Batch, Event, Status
from penstock.errors import InputError
from penstock.runs.journal import (
    JournalWriter,
    read_journal,
    read_newest,
    read_recent,
    read_ticks,
)
from penstock.runs.journal_parts import Limits
from penstock.runs.scores import Scores, score
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.runs.tick_json import tick_from_json, tick_to_json

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def ticks() -> list[Tick]:
    """Half an hour with changes, pauses, drops and a cool-down slept through."""
    spec = SimulationSpec(
        policy="dhalion", minutes=30, initial=2, profile={"queues.retention_s": 100}
    )
    return list(prepare_simulation(spec).ticks())


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
        ("[15.0]", ":3: is not a tick"),
        ('{"resumed": {}}', ":3: at: missing"),
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
        ('{"version": 3, "run": {}}\n', "version: cannot read version 3, only 2 and older"),
        ("[]\n", "is not a journal: its first line has no header"),
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
    again = score(journal.ticks, journal.run["objective_s"]).to_json()
    assert again == {name: result[name] for name in again}


def some_ticks(count: int) -> list[Tick]:
    """Ticks with a failed change, retries, a late tick, an engine that ends, and odd numbers."""
    engine = SlowEngine(
        stalls=lambda at: at < 80.0, oversleeps={30.0: 31.0}, over_at=15.0 * count - 1
    )
    decider = Decider(policy_of(wants(work=3)))
    schedule = LoopSchedule(duration_s=15.0 * count, interval_s=15.0)
    patience = Patience(deadline_s=30.0)
    return list(run_loop(engine, decider, schedule, clock=engine.clock, patience=patience))


def test_what_the_loop_adds_comes_back(tmp_path: Path) -> None:
    ticks = some_ticks(8)
    kinds = {event.kind for tick in ticks for event in tick.status.events}
    assert kinds == {"failed", "retried", "late-tick"}
    with JournalWriter(tmp_path / "j", {}) as journal:
        for tick in ticks:
            journal.write(tick)
    for again, tick in zip(read_ticks(tmp_path / "j"), ticks, strict=True):
        assert (again.plan, again.error) == (tick.plan, tick.error)
        assert again.status.events == tick.status.events
        assert again.status.over == tick.status.over == (tick is ticks[-1])


def test_both_levels_come_back() -> None:
    status = Status(
        at=5.0, requested={}, running={}, executors=1, executors_requested=3, executor_s=5.5
    )
    tick = Tick(at=5.0, status=status)
    assert tick_from_json(json.loads(json.dumps(tick_to_json(tick)))) == tick


def test_batches_come_back() -> None:
    done = Batch(1.2, 1.9, 2, 40, 20, 0.9, 0.5, 44)
    status = Status(at=5.0, requested={}, running={}, batches={"map": (done, done), "sink": ()})
    tick = Tick(at=5.0, status=status)
    assert tick_from_json(json.loads(json.dumps(tick_to_json(tick)))) == tick


def test_a_plan_is_written_only_where_it_is_not_the_decision() -> None:
    written = [tick_to_json(tick) for tick in some_ticks(8)]
    assert [line["at"] for line in written if line["applied"]] == [15, 90]
    assert not any("plan" in line for line in written)
    for plan in ({}, {"read": 2}, {"work": 3, "read": 2}):
        other = replace(some_ticks(1)[0], plan=plan)
        assert tick_to_json(other)["plan"] == tick_from_json(tick_to_json(other)).plan == plan


def test_numbers_that_json_does_not_have_leave_the_journal_readable(tmp_path: Path) -> None:
    (tick,) = some_ticks(1)
    target = replace(
        tick.decision.targets["work"],
        formula="{a} {b} {c}",
        numbers={"a": [float("nan"), np.float32(0.5)], "b": np.int64(7), ("c",): {1}},
    )
    decision = replace(tick.decision, targets={"work": target})
    with JournalWriter(tmp_path / "j", {"duration_s": float("inf")}) as journal:
        journal.write(replace(tick, decision=decision))
    journal = read_journal(tmp_path / "j")
    assert journal.run == {"duration_s": None}
    numbers = journal.ticks[0].decision.targets["work"].numbers
    assert numbers == {"a": [None, 0.5], "b": 7, "('c',)": "{1}"}


TICKS = some_ticks(8)


def whole_journal() -> bytes:
    with TemporaryDirectory() as root:
        path = Path(root) / "journal.jsonl"
        with JournalWriter(path, {"policy": "made", "place": "Zürich"}) as journal:
            for tick in TICKS[:4]:
                journal.write(tick)
        return path.read_bytes()


WHOLE = whole_journal()
HEADER_ENDS = WHOLE.index(b"\n") + 1


@given(cut=st.integers(0, len(WHOLE)))
@example(cut=0)
@example(cut=HEADER_ENDS - 1)
@example(cut=HEADER_ENDS)
@example(cut=len(WHOLE) - 1)
@example(cut=len(WHOLE))
def test_a_journal_cut_at_any_byte_is_readable_and_can_be_resumed(cut: int) -> None:
    has_header, kept = cut >= HEADER_ENDS, max(0, WHOLE[:cut].count(b"\n") - 1)
    with TemporaryDirectory() as root:
        path = Path(root) / "journal.jsonl"
        path.write_bytes(WHOLE[:cut])
        if has_header:
            assert [tick.at for tick in read_ticks(path)] == [tick.at for tick in TICKS[:kept]]
        with JournalWriter.resume(path, {"policy": "made"}) as journal:
            assert journal.start_s == (TICKS[kept - 1].at if kept else 0.0)
            for tick in TICKS[kept:]:
                journal.write(tick)
        found = read_journal(path)
    assert found.run["policy"] == "made" and ("place" in found.run) == has_header
    assert [tick.at for tick in found.ticks] == [tick.at for tick in TICKS]
    for n, (tick, was) in enumerate(zip(found.ticks, TICKS, strict=True)):
        resumed = [Event(at=journal.start_s, kind="resumed-run")] if n == kept else []
        assert tick.status.events == (*(resumed if has_header else ()), *was.status.events)


@given(lost=st.integers(0, 40))
def test_a_run_that_is_killed_while_it_is_resumed_can_be_resumed(lost: int) -> None:
    with TemporaryDirectory() as root:
        path = Path(root) / "journal.jsonl"
        path.write_bytes(WHOLE)
        JournalWriter.resume(path, {}).__exit__(None, None, None)
        resumed = path.read_bytes()
        path.write_bytes(resumed[: max(len(WHOLE), len(resumed) - lost)])
        with JournalWriter.resume(path, {}) as journal:
            assert journal.start_s == TICKS[3].at
        assert [tick.at for tick in read_ticks(path)] == [tick.at for tick in TICKS[:4]]


def test_half_a_line_is_gone_as_soon_as_a_run_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(WHOLE[:-1])
    with JournalWriter.resume(path, {}):
        pass
    *kept, last = path.read_bytes().splitlines(keepends=True)
    assert b"".join(kept) == WHOLE[: WHOLE[:-1].rfind(b"\n") + 1]
    assert json.loads(last) == {"resumed": {"at": TICKS[2].at}}


def test_each_resumption_is_an_event_of_the_tick_after_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(WHOLE)
    for _ in range(2):
        with JournalWriter.resume(path, {}):
            pass
    assert len(read_journal(path).ticks) == 4
    with JournalWriter.resume(path, {}) as journal:
        journal.write(TICKS[4])
    last = read_journal(path).ticks[-1]
    assert [(event.kind, event.at) for event in last.status.events[:3]] == [
        ("resumed-run", TICKS[3].at)
    ] * 3


DAMAGE = [
    b"[]\n",
    b"\xff\xfe\n",
    b'{"at": 75.0',
    b'{"at": 75.0}\n',
    b"null\n",
    b'"text"\n',
    b"{}\n",
    b'{"resumed": []}\n',
    b'{"at": "x", "records": [], "requested": 1, "running": 2, "replica_s": 3}\n',
    b"\0" * 512,
    b"\0" * 512 + b"\n",
    b"[]\n[]\n\xff",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_end_is_left_out_and_cut_off_on_resumption(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(WHOLE + damage)
    assert [tick.at for tick in read_journal(path).ticks] == [tick.at for tick in TICKS[:4]]
    with JournalWriter.resume(path, {}) as journal:
        assert journal.start_s == TICKS[3].at
        journal.write(TICKS[4])
    assert path.read_bytes().startswith(WHOLE + b'{"resumed"')
    assert [tick.at for tick in read_journal(path).ticks] == [tick.at for tick in TICKS[:5]]


@pytest.mark.parametrize("damage", [each for each in DAMAGE if each.endswith(b"\n")])
def test_damage_in_the_middle_is_one_error_with_file_and_line(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "journal.jsonl"
    lines = WHOLE.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], damage, *lines[3:]]))
    for read in (read_journal, lambda path: list(read_ticks(path))):
        with pytest.raises(InputError) as error:
            read(path)
        assert str(error.value).startswith(f"{path}:4: ")
        assert "hint: " in str(error.value)


@given(st.binary(max_size=200))
def test_whatever_stands_at_the_end_nothing_whole_is_lost(end: bytes) -> None:
    with TemporaryDirectory() as root:
        path = Path(root) / "journal.jsonl"
        path.write_bytes(WHOLE + end)
        with JournalWriter.resume(path, {}) as journal:
            assert journal.start_s == TICKS[3].at
        assert len(read_journal(path).ticks) == 4


# --- parts


def write_parts(path: Path, ticks: list[Tick], limits: Limits, kill_every: int = 0) -> None:
    """Write ticks with a small limit; every few of them the process is killed and resumed."""
    journal, scores = JournalWriter(path, {"policy": "made"}, limits=limits), Scores(5.0)
    journal.carry = scores.to_json
    for number, tick in enumerate(ticks, start=1):
        journal.write(tick)
        scores.add(tick)
        if kill_every and number % kill_every == 0:
            journal.__exit__(None, None, None)
            journal = JournalWriter.resume(path, {"policy": "made"}, limits)
            carried, newest = read_newest(path)
            scores = Scores.from_json(carried, 5.0) if carried else Scores(5.0)
            for each in newest:
                scores.add(each)
            journal.carry = scores.to_json
    journal.__exit__(None, None, None)


@pytest.mark.parametrize("kill_every", [0, 1, 7])
def test_a_journal_of_many_parts_is_read_as_one(
    ticks: list[Tick], tmp_path: Path, kill_every: int
) -> None:
    path = tmp_path / "journal.jsonl"
    write_parts(path, ticks, Limits(part_bytes=8_000, older_parts=1000), kill_every)
    assert len(list(tmp_path.iterdir())) > 5
    journal = read_journal(path)
    assert journal.run == {"policy": "made"} and journal.begins_s == 0
    assert [tick.at for tick in journal.ticks] == [tick.at for tick in ticks]
    assert score(journal.ticks, 5.0) == score(ticks, 5.0)
    assert list(read_recent(path))[-1].at == ticks[-1].at


@pytest.mark.parametrize("kill_every", [0, 7])
def test_figures_survive_the_removal_of_old_parts(
    ticks: list[Tick], tmp_path: Path, kill_every: int
) -> None:
    path = tmp_path / "journal.jsonl"
    limits = Limits(part_bytes=20_000, older_parts=2)
    write_parts(path, ticks, limits, kill_every)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    largest = max(len(json.dumps(tick_to_json(tick))) for tick in ticks)
    for file in files:
        header = len(file.read_bytes().splitlines()[0])
        assert file.stat().st_size < limits.part_bytes + largest + header + 200
    journal = read_journal(path)
    assert 0 < journal.begins_s < journal.ticks[0].at < journal.ticks[-1].at == ticks[-1].at
    carried, newest = read_newest(path)
    scores = Scores.from_json(carried, 5.0)
    for tick in newest:
        scores.add(tick)
    assert scores.result() == score(ticks, 5.0)


def test_a_kill_while_a_part_is_put_aside_loses_and_doubles_nothing(
    ticks: list[Tick], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path, {}, limits=Limits(part_bytes=1, older_parts=5))
    journal.carry = dict
    journal.write(ticks[0])
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            journal.write(ticks[1])
    journal.__exit__(None, None, None)
    assert len(read_journal(path).ticks) == 1  # one file under two names
    with JournalWriter.resume(path, {}, Limits(part_bytes=1, older_parts=5)) as journal:
        journal.carry = dict
        for tick in ticks[1:4]:
            journal.write(tick)
    assert [tick.at for tick in read_journal(path).ticks] == [tick.at for tick in ticks[:4]]


def test_a_run_that_nobody_sums_up_keeps_one_file(ticks: list[Tick], tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "j", {}, limits=Limits(part_bytes=1)) as journal:
        for tick in ticks:
            journal.write(tick)
    assert [path.name for path in tmp_path.iterdir()] == ["j"]


def test_a_newest_part_without_header_is_not_begun_anew(ticks: list[Tick], tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_parts(path, ticks[:20], Limits(part_bytes=10_000))
    path.write_bytes(b"[]\n")
    with pytest.raises(InputError, match="there are older parts of this journal"):
        JournalWriter.resume(path, {})


def test_a_process_that_is_killed_has_lost_no_line(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from penstock.runs.journal import JournalWriter, read_ticks\n"
        "source, path = map(Path, sys.argv[1:])\n"
        "journal = JournalWriter(path, {'policy': 'dhalion'})\n"
        "for tick in list(read_ticks(source))[:30]: journal.write(tick)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "journal.jsonl"
    source = RECORDED / "journal-v1.jsonl"
    done = subprocess.run([sys.executable, "-c", script, source, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(read_journal(path).ticks) == 30
