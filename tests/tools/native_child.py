"""A driver that dies in a step of a repartition, as a kill would have it.

    python -m tests.tools.native_child RUN [--die-in STEP] [--after-s S] [--last FIRST END]

Without a step to die in, it lets everything be processed, then some last clicks, which close the
windows before them, and leaves with 0.
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tools.drive import locked
from tests.tools.native_rows import MOST, clicks_and_views, give

from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.native_state.rescaler import STEPS, Rescaler
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout

#: What to do if the step to die in never comes.
PATIENCE_S = 90.0


def die() -> None:
    """Nothing can be done about it."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in(wanted: str, after_s: float) -> None:
    """Let the step of that name kill this process, at once or in the middle."""
    usual = Rescaler._step

    @contextmanager
    def step(self: Rescaler, name: str, step: str, seconds: dict[str, float]) -> Iterator[None]:
        if step == wanted:
            threading.Timer(after_s, die).start() if after_s else die()
        with usual(self, name, step, seconds):
            yield

    Rescaler._step = step  # type: ignore[method-assign]


def _work_off(engine: SparkEngine) -> None:
    while not engine.is_drained:
        engine.advance(0.25)


def main() -> int:
    """Run, and die or finish."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--die-in", choices=STEPS)
    parser.add_argument("--after-s", type=float, default=0.0)
    parser.add_argument("--last", type=int, nargs=2)
    args = parser.parse_args()
    layout = RunLayout(args.run)
    lock = locked(args.run / "lock")
    spark = start_session("native", 12, layout.log, lock=lock.fileno())
    timing = BatchTiming(batch_s=0.5, min_interval_s=0.2)
    engine = SparkEngine(spark, clicks_and_views(), layout, timing=timing)
    engine.start()
    if args.die_in is not None:
        die_in(args.die_in, args.after_s)
        now = engine.status().running
        engine.apply(Plan(replicas={name: k % MOST + 1 for name, k in now.items()}))
        time.sleep(PATIENCE_S)
        return 1
    _work_off(engine)
    give(layout, engine.pipeline, *args.last)
    _work_off(engine)
    engine.stop()
    end_session(spark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
