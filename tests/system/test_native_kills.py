"""A change of Spark's own state that is killed in any step ends in the old or the new parts."""

import signal
import subprocess
import sys

import pytest
from tests.tools.child import ROOT
from tests.tools.native_rows import clicks_and_views, give, wrong

from penstock.engines.spark.native_state.rescaler import STEPS
from penstock.engines.spark.recovery.checkpoints import read_last_batch
from penstock.engines.spark.run_layout import RunLayout

pytestmark = pytest.mark.spark

ROWS = 300
#: Seconds after which Spark is in the middle of it.
INSIDE_S = 0.3


def drive(layout: RunLayout, *options: str) -> int:
    """Let a driver run until it dies or is done."""
    command = [sys.executable, "-m", "tests.tools.native_child", str(layout.run), *options]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=240).returncode


def kill_in(layout: RunLayout, *deaths: tuple[str, float]) -> None:
    """Die in one step after the other, each time in a new start; then finish and compare."""
    pipeline = clicks_and_views()
    for number, (step, after_s) in enumerate(deaths):
        give(layout, pipeline, number * ROWS, (number + 1) * ROWS)
        code = drive(layout, "--die-in", step, "--after-s", str(after_s))
        assert code == -signal.SIGKILL, step
    count = len(deaths) * ROWS
    assert drive(layout, "--last", str(count), str(count + ROWS)) == 0
    assert wrong(layout, count + ROWS, before=count) == []
    for name in pipeline.operators:
        last = read_last_batch(layout.checkpoint(name))
        assert last is not None and last.is_committed


def test_killed_while_spark_deals_the_state_anew(layout: RunLayout) -> None:
    kill_in(layout, ("repartition", INSIDE_S))


@pytest.mark.long
def test_killed_in_every_step(layout: RunLayout) -> None:
    at_once = [(step, 0.0) for step in STEPS]
    inside = [("repartition", after_s) for after_s in (0.1, 0.2, 0.4, 0.6, 0.8)]
    kill_in(layout, *at_once, *inside, ("restart", 0.5))
