"""General tests that engines with hosts pass: the simulator, and Spark with queries made up."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.engine_checks import Paced
from tests.contracts.host_checks import CHECKS
from tests.engines.spark.test_engine import Query

from penstock.engines.port import Engine
from penstock.engines.simulator.hosts.engine import HostEngine
from penstock.engines.simulator.library import load_pipeline, load_profile
from penstock.engines.spark import engine as engine_module
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful import counts
from penstock.workloads.workload import Workload


def make_simulated() -> Engine:
    load = Workload.of_steps([20.0] * 60)
    engine = HostEngine(
        load_pipeline("streamhub"), load_profile("streamhub"), load, hosts=2, seed=1
    )
    engine.advance(10)
    return engine


def make_spark(run: Path) -> Engine:
    pipeline = Pipeline("words", hosts=Hosts(start=2, most=4))
    pipeline.topic("words", "word string", external=True)
    for name in ("count", "again"):
        ready = counts(by="word")
        pipeline.sliced("words", f"{name}-out", name=name, slices=4, max_replicas=4)(ready)
    timing = BatchTiming(window_s=0.02)
    engine = SparkEngine(None, pipeline, RunLayout(run), timing=timing)  # type: ignore[arg-type]
    engine.start()
    paced = Paced(engine, pace=0.02)
    paced.advance(10)
    return paced


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("engine", ["simulator", "spark"])
def test_every_engine_with_hosts(
    engine: str,
    check: Callable[[Engine], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "make_query", lambda *_, **__: Query)
    monkeypatch.setattr(engine_module, "MAX_START_S", 0.1)
    check(make_simulated() if engine == "simulator" else make_spark(tmp_path / "run"))
