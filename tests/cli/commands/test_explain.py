"""`penstock explain`, on a recorded run and on fresh ones."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.control.rig import SlowEngine, policy_of, wants
from tests.fakes import ONE_MORE, FakeEngine

from penstock.cli.main import main
from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, run_loop
from penstock.core.snapshot import Snapshot
from penstock.engines.events import FailedEvent, HeldEvent, RescaledEvent, StepEvent
from penstock.errors import RescaleError
from penstock.runs.run_directory import begin_run

Capture = pytest.CaptureFixture[str]
RECORDED = Path(__file__).parents[2] / "recorded"


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Eleven minutes with Dhalion, as recorded."""
    shutil.copy(RECORDED / "run-v1.toml", tmp_path / "run.toml")
    shutil.copy(RECORDED / "journal-v1.jsonl", tmp_path / "journal.jsonl")
    return str(tmp_path)


@pytest.fixture
def real_run(tmp_path: Path) -> str:
    """A minute on Spark, killed once and resumed, as recorded."""
    shutil.copy(RECORDED / "run-spark-v1.toml", tmp_path / "run.toml")
    shutil.copy(RECORDED / "journal-spark-v1.jsonl", tmp_path / "journal.jsonl")
    return str(tmp_path)


def tell(capsys: Capture, *argv: str) -> str:
    assert main(["explain", *argv]) == 0
    return capsys.readouterr().out


def test_all_changes_are_told_with_reason_and_what_followed(run: str, capsys: Capture) -> None:
    text = tell(capsys, run)
    assert text.startswith("dhalion: 4 changes in 44 ticks, 11 min\n")
    assert (
        "\nat 375 s (0:06:15)\n"
        "  source  8 -> 23  wanted 80 (bottleneck), then 23 by max_increase\n"
        "  0:06:15  now running: source 23\n"
        "  0:06:35  source loses 27,904,603 records (retention)\n"
        "  0:06:43  the pipeline works again, 28 s after the decision\n"
    ) in text


def test_it_is_told_why_nothing_changed_at_the_other_ticks(run: str, capsys: Capture) -> None:
    assert (
        "why not at the other ticks:\n"
        "  source  mapper  sink\n"
        "      40      40    40  cool-down or end of the run: the policy was not called\n"
        "       2       2     4  bottleneck-elsewhere: another operator is the bottleneck\n"
    ) in tell(capsys, run)


def test_the_last_decision_is_told_in_full(run: str, capsys: Capture) -> None:
    text = tell(capsys, run).split("the last decision, ")[1]
    assert text.startswith("at 555 s, dhalion\n  source: stays at 23 replicas")
    for label in ("measured", "formula", "proposal", "result"):
        assert f"    {label}" in text


def test_one_operator_can_be_told_alone(run: str, capsys: Capture) -> None:
    text = tell(capsys, run, "--operator", "mapper")
    assert text.startswith("dhalion: 2 changes of mapper in 44 ticks, 11 min\n")
    assert "at 195 s" in text and "at 15 s" not in text
    assert "source" not in text.split("why not")[0]
    assert "  sink:" not in text


@pytest.mark.parametrize("at", ["375", "380s", "6.25m"])
def test_a_tick_is_found_by_the_nearest_time(run: str, at: str, capsys: Capture) -> None:
    text = tell(capsys, run, "--at", at, "--operator", "source")
    assert text.startswith("at 375 s, dhalion\n  source: 8 -> 23 replicas (step-limited)\n")
    assert "guard     max_increase: 80 -> 23" in text
    assert text.endswith("  0:06:43  the pipeline works again, 28 s after the decision\n")


def test_a_tick_without_a_decision_says_why_and_shows_the_one_before(
    run: str, capsys: Capture
) -> None:
    text = tell(capsys, run, "--at", "90")
    assert text.startswith(
        "at 90 s nothing was decided: cool-down or end of the run: the policy was not called\n\n"
        "the last decision before that, at 15 s, dhalion\n"
    )


def test_refusals_and_starts_are_told(tmp_path: Path, capsys: Capture) -> None:
    engine = FakeEngine(not_ready={15.0}, refuses={30.0})
    schedule = LoopSchedule(duration_s=60.0, interval_s=15.0)
    with begin_run(tmp_path, {"policy": "./gone.py"}, {"policy": "one-more"}) as journal:
        for tick in run_loop(engine, Decider(ONE_MORE), schedule):
            journal.write(tick)
    text = tell(capsys, str(tmp_path))
    assert text.startswith("one-more: 2 changes in 4 ticks, 1 min\n")
    assert "at 30 s (0:00:30)\n  map  1 -> 2  bottleneck: this" in text
    assert "  not carried out: no machine is free\n" in text
    assert "  map\n    1  still starting\n" in text
    assert tell(capsys, str(tmp_path), "--at", "15") == (
        "at 15 s nothing was decided: still starting\n"
    )
    assert "  not carried out: no machine is free\n" in tell(capsys, str(tmp_path), "--at", "30")


def test_a_run_that_was_not_simulated_is_told(real_run: str, capsys: Capture) -> None:
    text = tell(capsys, real_run)
    assert text.startswith(
        "queueing: 7 changes in 32 ticks, 1.067 min\n\nat 4.002 s (0:00:04.002)\n"
    )
    above = "response-above-objective: the expected response time exceeds the objective\n"
    assert (
        f"\nat 14.02 s (0:00:14.021)\n  recognise  4 -> 5  {above}"
        "  0:00:14.656  now running: recognise 5\n"
        f"\nat 22 s (0:00:22.001)\n  recognise  5 -> 6  {above}"
        "  0:00:24.012  the run was resumed here\n"
        f"\nat 24.01 s (0:00:24.012)\n  recognise  5 -> 6  {above}"
        "  not carried out: recognise 6 is under way\n"
    ) in text
    assert "  thumbnail  resize  recognise\n" in text
    assert "          2       2          2  no batch has been committed yet\n" in text
    assert "8 replicas running (at most 15), 0 records/s arrive" in text
    alone = tell(capsys, real_run, "--operator", "resize")
    assert alone.startswith("queueing: 0 changes of resize in 32 ticks")
    assert tell(capsys, real_run, "--at", "26").startswith(
        "at 26 s nothing was decided: no batch has been committed yet\n"
    )


RESCALED = RescaledEvent(
    at=12.0, operator="sum", replicas=3, before=2, state_rows=100_000, pause_s=2.5,
    hold_s=0.1, wait_s=0.1, stop_s=0.1, repartition_s=1.2, restart_s=1.0,
)  # fmt: skip


def test_all_that_befell_a_run_is_told(tmp_path: Path, capsys: Capture) -> None:
    def answer(now: Snapshot) -> object:
        if now.at == 45:
            raise TimeoutError("no answer within 5 s")
        return wants(work=4 if now.at < 100 else 2)(now)

    engine = SlowEngine(
        refuses=lambda at: RescaleError("no worker is free") if 100 < at < 110 else None,
        stalls=lambda at: at < 75,
        oversleeps={120.0: 20.0},
    )
    engine.events = [
        FailedEvent(at=7.25, operator="read", error="ValueError: no number"),
        StepEvent(at=9.0, operator="sum", step="hold", duration_s=0.1),
        RESCALED,
        HeldEvent(at=15.5, operator="read"),
    ]
    schedule, decider = LoopSchedule(duration_s=150.0, interval_s=15.0), Decider(policy_of(answer))
    patience = Patience(deadline_s=30.0)
    loop = run_loop(engine, decider, schedule, clock=engine.clock, patience=patience)
    with begin_run(tmp_path, {}, {"policy": "made"}) as journal:
        for tick in loop:
            journal.write(tick)
    text = tell(capsys, str(tmp_path))
    assert text.startswith(
        "made: 3 changes in 9 ticks, 2.5 min\n\n"
        "before the first change\n"
        "  0:00:07.25  read failed: ValueError: no number\n"
        "  0:00:12  sum: 100,000 rows of state went to 3 replicas, stopped for 2.5 s"
        " (wait 0.1, repartition 1.2, restart 1)\n\n"
        "at 15 s (0:00:15)\n"
        "  work  1 -> 4  bottleneck: this operator holds the others back\n"
        "  0:00:15.5  read waits: the operators behind it are too slow (back-pressure)\n"
        "  0:00:45  work failed: requested 4 replicas, 1 running\n"
        "  0:01:00  work: 4 replicas are requested again, try 2\n"
    )
    assert "not carried out: work 4 is in progress" not in text
    assert re.search(r"^ +0 +2  an earlier change is in progress$", text, re.MULTILINE)
    assert text.count("  not carried out: no worker is free\n") == 1
    assert "  0:02:20  the loop is late; skipped ticks: 1\n" in text
    assert "  1     1  made failed: TimeoutError: no answer within 5 s" in text
    assert "read failed" not in tell(capsys, str(tmp_path), "--operator", "work")


def test_what_was_given_up_is_told(tmp_path: Path, capsys: Capture) -> None:
    def answer(now: Snapshot) -> object:
        return wants(work=3 if now.at < 40 else 5)(now)

    engine = SlowEngine(refuses=lambda at: RescaleError("no") if at < 40 else None)
    schedule = LoopSchedule(duration_s=60.0, interval_s=15.0)
    loop = run_loop(engine, Decider(policy_of(answer)), schedule, patience=Patience())
    with begin_run(tmp_path, {}, {"policy": "made"}) as journal:
        for tick in loop:
            journal.write(tick)
    text = tell(capsys, str(tmp_path))
    assert (
        "before the first change\n"
        "  0:00:30  work: 3 replicas are requested again, try 2\n"
        "  0:00:45  work: 3 replicas are no longer requested, 5 are wanted\n"
    ) in text
    assert text.count("not carried out: no\n") == 2


def test_a_dry_run_says_at_every_change_that_it_is_one(tmp_path: Path, capsys: Capture) -> None:
    schedule = LoopSchedule(duration_s=60.0, interval_s=15.0)
    with begin_run(tmp_path, {}, {"policy": "one-more"}) as journal:
        for tick in run_loop(FakeEngine(), Decider(ONE_MORE), schedule, dry_run=True):
            journal.write(tick)
    text = tell(capsys, str(tmp_path))
    assert text.startswith("one-more: 0 changes in 4 ticks")
    assert text.count("  not carried out: dry run\n") == 4


def test_what_takes_effect_at_once_follows_from_its_own_decision(
    tmp_path: Path, capsys: Capture
) -> None:
    out = str(tmp_path / "run")
    options = ["--query", "images", "--engine", "pulsar", "--policy", "threshold"]
    load = ["--workload", "constant(rate=3)", "--minutes", "10"]
    assert main(["simulate", *options, *load, "--out", out]) == 0
    capsys.readouterr()
    stories = tell(capsys, out).split("why not")[0].split("\nat ")[1:]
    assert len(stories) > 3
    for story in stories:
        (wanted,) = re.findall(r"-> (\d+)", story)
        assert re.findall(r"now running: recognise (\d+)", story) in ([wanted], [])


@pytest.mark.parametrize("policy", ["ds2", "hpa-varga", "flink", "threshold"])
def test_fresh_runs_can_be_explained(policy: str, tmp_path: Path, capsys: Capture) -> None:
    out = str(tmp_path / "run")
    assert main(["simulate", "--minutes", "20", "--policy", policy, "--out", out]) == 0
    capsys.readouterr()
    assert tell(capsys, out).startswith(f"{policy}: ")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--operator", "maper"], "there is no operator 'maper'\nhint: did you mean 'mapper'?"),
        (["--at", "noon"], "--at: must be seconds, or minutes such as 33m, got 'noon'"),
    ],
)
def test_mistakes_are_named(run: str, options: list[str], problem: str, capsys: Capture) -> None:
    assert main(["explain", run, *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and problem in captured.err


def test_a_journal_without_ticks_is_told(tmp_path: Path, capsys: Capture) -> None:
    with begin_run(tmp_path, {}, {"policy": "ds2"}):
        pass
    assert main(["explain", str(tmp_path)]) == 2
    assert "the journal has no tick yet" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "replay"])
@pytest.mark.parametrize("damage", [b"[]\n", b"\xff\xfe\n", b'{"at": 9', b"{}\n", b"\0" * 99])
def test_a_damaged_journal_is_no_traceback(
    real_run: str, command: str, damage: bytes, capsys: Capture
) -> None:
    path = Path(real_run) / "journal.jsonl"
    whole = path.read_bytes()
    assert main([command, real_run]) == 0
    expected = capsys.readouterr().out
    path.write_bytes(whole + damage)
    assert main([command, real_run]) == 0
    assert capsys.readouterr().out == expected
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], damage.rstrip(b"\n") + b"\n", *lines[5:]]))
    assert main([command, real_run]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}:6: ")


def test_operators_that_came_later_are_told_of(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "run"
    with begin_run(path, {}, {"policy": "made"}) as journal:
        for tick in run_loop(
            FakeEngine(), Decider(ONE_MORE), LoopSchedule(duration_s=45, interval_s=15)
        ):
            journal.write(tick)
    lines = (path / "journal.jsonl").read_text().splitlines()
    later = lines[-1].replace('"map"', '"mapper"').replace('"at":45.0', '"at":60.0')
    assert later != lines[-1]
    (path / "journal.jsonl").write_text("\n".join([*lines, later, ""]))
    assert "mapper" in tell(capsys, str(path))
    assert "mapper" in tell(capsys, str(path), "--operator", "mapper")
    assert "map was not there" in tell(capsys, str(path), "--operator", "map", "--at", "99")


def test_a_journal_without_its_first_part_says_so(real_run: str, capsys: Capture) -> None:
    path = Path(real_run) / "journal.jsonl"
    header, *ticks = path.read_text().splitlines()
    header = json.dumps({**json.loads(header), "version": 2, "part": 3, "begins_s": 600.0})
    path.write_text("\n".join([header, *ticks, ""]))
    assert "the journal of the first 10 min was removed" in tell(capsys, real_run)
    assert main(["replay", real_run]) == 0
    assert "first 10 min was removed" in capsys.readouterr().err
