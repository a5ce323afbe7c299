"""A pipeline on Spark in this process, without a control loop: for measurements."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.engines.spark.cluster.session import end_session, module_list, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.cluster.worker_process import needed_modules, write_module_list
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.files.lock import Lock
from penstock.pipelines.pipeline import Pipeline


@contextmanager
def run_engine(
    pipeline: Pipeline,
    directory: Path,
    timing: BatchTiming,
    replicas: Mapping[str, int],
) -> Iterator[SparkEngine]:
    """Start Spark, workers for all replicas and the operators; stop them at the end."""
    layout = RunLayout(directory.resolve())
    directory.mkdir(parents=True, exist_ok=True)
    with Lock(directory / "lock") as lock:
        slots = sum(operator.options.max_replicas for operator in pipeline.operators.values())
        session = start_session(pipeline.name, slots, layout.log, lock.fileno())
        try:
            modules = needed_modules(pipeline.operators.values())
            write_module_list(module_list(layout.log), modules)
            start_workers(session, sum(replicas.values()), directory / "warm")
            engine = SparkEngine(session, pipeline, layout, timing=timing, initial=replicas)
            engine.start()
            try:
                yield engine
            finally:
                engine.stop()
        finally:
            end_session(session)
