"""Run directories in the form of runs on Spark, made by the simulator with known numbers."""

import json
from pathlib import Path

from penstock.engines.simulator.profile import Profile
from penstock.pipelines.description import describe
from penstock.runs.journal import Journal
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RunDirectory, begin_run, finish_run
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec
from penstock.twin.calibration_runs import read_operators
from penstock.twin.twin import RecordedRun, simulate_twin


def make_run(directory: Path, spec: SparkSpec, profile: Profile, seed: int = 7) -> Path:
    """Write what a run on Spark would have left behind, had it gone as the simulator says."""
    prepared = prepare_spark_run(spec)
    header = prepared.header()
    asked = spec.to_json()
    empty = RunDirectory(
        directory=directory, spec=asked, versions={}, journal=Journal(header, ()), result=None
    )
    with begin_run(directory, asked, header) as journal:
        told = json.dumps(describe(prepared.pipeline))
        (directory / "pipeline.json").write_text(told, encoding="utf-8")
        real = RecordedRun(
            directory=directory,
            run=empty,
            spec=spec,
            prepared=prepared,
            parts=read_operators(directory),
        )
        for tick in simulate_twin(real, profile, seed):
            journal.write(tick)
    finish_run(directory, RunResult.from_json({"spec": asked, "ended": "finished"}))
    return directory
