"""Every step of a change of Spark's own state may fail; Spark is played by files here."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.spark.recovery.test_checkpoints import commit, plan

from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.events import Event, FailedEvent, RescaledEvent, StepEvent, kind_of
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import read_command
from penstock.engines.spark.native_state import rescaler as rescaling
from penstock.engines.spark.native_state.repartition import check_version
from penstock.engines.spark.native_state.rescale_log import Cost, RescaleLog, estimate_s
from penstock.engines.spark.native_state.rescaler import STEPS, Rescaler
from penstock.engines.spark.recovery.checkpoints import read_last_batch
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import RescaleError

OFFSET = '{"at":{"a":5},"skips":{}}'


class Query:
    """A query that waits for rows."""

    def __init__(self) -> None:
        self.isActive = True
        self.status = {"isTriggerActive": False, "message": "Waiting for data to arrive"}
        self.lastProgress = {"stateOperators": [{"numRowsTotal": 40}, {"numRowsTotal": 2}]}

    def stop(self) -> None:
        self.isActive = False


class Stage:
    """A starter and Spark's tool, with a checkpoint of two parts."""

    def __init__(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.layout = RunLayout(run)
        self.queries = {"count": Query()}
        self.failed: dict[str, str] = {}
        self.starts = 0
        #: What becomes of the next repartitions: done if there is nothing more.
        self.accidents: list[Callable[[int], None]] = []
        self.checkpoint = self.layout.checkpoint("count")
        plan(self.checkpoint, 0, 2, OFFSET)
        commit(self.checkpoint, 0)
        monkeypatch.setattr(rescaling, "repartition", self.repartition)
        monkeypatch.setattr(rescaling, "use_in_this_thread", lambda _spark: None)
        self.rescaler = Rescaler(None, self.layout, self)  # type: ignore[arg-type]

    def pause(self, name: str) -> None:
        self.queries[name].stop()

    def resume(self, name: str) -> None:
        if not self.queries[name].isActive:
            self.starts += 1
            self.queries[name] = Query()

    def give_up(self, name: str, why: str) -> None:
        self.failed[name] = why

    def repartition(self, _spark: Any, checkpoint: Path, partitions: int) -> None:
        assert checkpoint == self.checkpoint
        assert not self.queries["count"].isActive
        if self.accidents:
            self.accidents.pop(0)(partitions)
        plan(checkpoint, 1, partitions, OFFSET)
        commit(checkpoint, 1)

    def refuse(self, _partitions: int) -> None:
        raise RescaleError("no")

    def break_off(self, partitions: int) -> None:
        """Leave a planned batch without its commit."""
        plan(self.checkpoint, 1, partitions, OFFSET)
        raise RescaleError("no")

    def change(self, wanted: int) -> list[Event]:
        self.rescaler.request("count", wanted)
        deadline = time.monotonic() + 10
        while self.rescaler.is_busy("count"):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return list(self.rescaler.events)

    @property
    def parts(self) -> int:
        last = read_last_batch(self.checkpoint)
        assert last is not None and last.is_committed
        return last.partitions


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def kinds(events: list[Event]) -> list[str]:
    return [kind_of(event) for event in events]


def error_of(event: Event) -> str:
    assert isinstance(event, FailedEvent)
    return event.error


def test_all_steps_are_told_with_their_seconds(stage: Stage) -> None:
    events = stage.change(3)
    assert [e.step for e in events if isinstance(e, StepEvent)] == list(STEPS)
    done = events[-1]
    assert isinstance(done, RescaledEvent)
    assert (done.before, done.replicas) == (2, 3)
    assert done.state_rows == 42
    assert done.pause_s == pytest.approx(
        sum(getattr(done, f"{step}_s") for step in STEPS), abs=0.01
    )
    assert stage.parts == 3
    order = read_command(stage.layout, "count")
    assert (order.replicas, order.hold) == (3, False)
    assert BatchLog(stage.layout.batches("count")).get(1).end == {"a": 5}  # type: ignore[union-attr]


def test_what_it_cost_is_known_to_the_next_start(stage: Stage) -> None:
    stage.change(3)
    again = Rescaler(None, stage.layout, stage)  # type: ignore[arg-type]
    assert again.expected_s("count") == pytest.approx(stage.rescaler.expected_s("count"))


def test_the_same_number_is_no_change(stage: Stage) -> None:
    assert stage.change(2) == []
    assert stage.starts == 0


def test_of_wishes_that_come_meanwhile_the_last_counts(stage: Stage) -> None:
    def ask_more(_partitions: int) -> None:
        stage.rescaler.request("count", 5)
        stage.rescaler.request("count", 3)

    stage.accidents = [ask_more]
    assert kinds(stage.change(3)).count("rescaled") == 1
    assert stage.parts == 3


def test_a_refusal_leaves_everything_as_it_was_and_running(stage: Stage) -> None:
    stage.accidents = [stage.refuse]
    events = stage.change(3)
    assert kinds(events)[-1] == "failed"
    assert error_of(events[-1]) == "no"
    assert (stage.parts, stage.starts, stage.failed) == (2, 1, {})
    assert read_command(stage.layout, "count").hold is False
    assert RescaleLog.load(stage.layout, "count").target is None


def test_what_broke_off_is_tried_again_with_the_same_number(stage: Stage) -> None:
    stage.accidents = [stage.break_off, stage.break_off]
    assert kinds(stage.change(3))[-1] == "rescaled"
    assert stage.parts == 3


def test_what_stays_broken_stops_the_operator_until_the_next_start(stage: Stage) -> None:
    stage.accidents = [stage.break_off] * 3
    stage.change(3)
    assert "restart the run to try it again" in stage.failed["count"]
    assert not stage.queries["count"].isActive
    assert RescaleLog.load(stage.layout, "count").target == 3
    again = Rescaler(None, stage.layout, stage)  # type: ignore[arg-type]
    assert again.finish("count", first=1) == 3
    assert stage.parts == 3
    assert RescaleLog.load(stage.layout, "count").target is None


def test_a_batch_that_does_not_end_is_told_and_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescaling, "MAX_WAIT_S", 0.05)
    stage.queries["count"].status["isTriggerActive"] = True
    events = stage.change(3)
    assert "did not end within" in error_of(events[-1])
    assert (stage.parts, stage.starts) == (2, 0)
    assert read_command(stage.layout, "count").hold is False


def test_an_operator_that_has_failed_is_left_alone(stage: Stage) -> None:
    stage.queries["count"].stop()
    stage.failed["count"] = "its function raised"
    events = stage.change(3)
    assert "has stopped" in error_of(events[-1])
    assert (stage.parts, stage.starts) == (2, 0)


def test_a_new_run_begins_with_what_it_is_told(tmp_path: Path) -> None:
    assert Rescaler(None, RunLayout(tmp_path), None).finish("count", first=4) == 4  # type: ignore[arg-type]


# --- what it costs


@given(
    st.lists(st.builds(Cost, st.integers(0, 10**7), st.floats(0.1, 100)), min_size=1),
    st.integers(0, 10**7),
)
def test_more_state_never_costs_less(past: list[Cost], rows: int) -> None:
    now, more = estimate_s(past, rows), estimate_s(past, rows + 10**6)
    assert now is not None and more is not None
    assert min(cost.seconds for cost in past) - 1e-9 <= now <= more + 1e-9


def test_policies_can_ask() -> None:
    op = OperatorSnapshot(name="count", parallelism=2, rescale_s=estimate_s([Cost(10, 2.5)], 10))
    assert op.rescale_s == 2.5


@pytest.mark.parametrize("version", ["4.1.0", "5.0.0", "snapshot"])
def test_a_spark_that_nobody_tried_is_refused(version: str) -> None:
    with pytest.raises(RescaleError, match="keeps its replicas"):
        check_version(version)
