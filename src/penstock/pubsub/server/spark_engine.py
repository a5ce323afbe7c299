"""The pipeline of a space on Spark, as a child process in a directory, and a broker beside it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.files.atomic import replace
from penstock.files.text import read_text
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline
from penstock.pubsub.pipeline import PubSubOptions, build_pipeline
from penstock.pubsub.server.engine_process import EngineProcess
from penstock.pubsub.server.service_directory import RUN, check_engine, read_stored_space
from penstock.pubsub.spaces.space import Space
from penstock.pubsub.topic_broker import TopicBroker
from penstock.runs.run_directory import SPEC_FILE

ENGINE_FILE, PIPELINE_FILE, LOG_FILE = "engine.json", "pipeline.py", "run.log"
FORMAT = 1
_SLICES = ("access_slices", "match_slices", "exit_slices")
_PIPELINE = '''\
"""The pipeline of this service; penstock pubsub serve runs it, penstock status shows it."""

from pathlib import Path

from penstock.pubsub.server.spark_engine import load_pipeline

pipeline = load_pipeline(Path(__file__).parent)
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEngineRun:
    """A run that has begun, and its broker; while it starts, requests wait in their topic."""

    process: EngineProcess
    broker: TopicBroker
    #: The run directory.
    run: Path


@contextmanager
def open_spark_engine(
    space: Space,
    directory: Path,
    *,
    options: PubSubOptions | None = None,
    run_options: tuple[str, ...] = (),
) -> Iterator[SparkEngineRun]:
    """Start the pipeline in a directory whose space is declared; end it afterwards.

    The same directory again continues where the last run ended, also after a kill.
    """
    check_engine(directory, RUN)
    options = agree_options(directory / ENGINE_FILE, options)
    replace(directory / PIPELINE_FILE, _PIPELINE.encode())
    run = directory / RUN
    command = [sys.executable, "-m", "penstock", "run", str(directory / PIPELINE_FILE)]
    command += ["--out", str(run), "--plain", *run_options]
    with EngineProcess(command, run, directory / LOG_FILE) as process:
        # a run makes its directory itself, and refuses one that already has topics
        process.wait_for(run / SPEC_FILE)
        with TopicBroker(space, run, options) as broker:
            yield SparkEngineRun(process=process, broker=broker, run=run)


def load_pipeline(directory: Path) -> Pipeline:
    """Return the pipeline of the service in a directory."""
    options = agree_options(directory / ENGINE_FILE, None)
    return build_pipeline(read_stored_space(directory), options)


def agree_options(path: Path, wanted: PubSubOptions | None) -> PubSubOptions:
    """Return the options of the engine: slices and hosts are fixed at the first start."""
    if not path.exists():
        options = wanted or PubSubOptions()
        replace(path, json.dumps(_to_json(options)).encode())
        return options
    try:
        stored = _from_json(json.loads(read_text(path)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("", f"is damaged: {error}", where=str(path)) from None
    if wanted is not None and wanted != stored:
        problem = f"differ from those of the first start: {json.dumps(_to_json(stored))}"
        raise InputError("--slices or --hosts", problem, "use another directory")
    return stored


def _to_json(options: PubSubOptions) -> dict[str, Any]:
    hosts = options.hosts.describe() if options.hosts else None
    numbers = {name: getattr(options, name) for name in (*_SLICES, "max_replicas")}
    return {"format": FORMAT, **numbers, "hosts": hosts}


def _from_json(fields: dict[str, Any]) -> PubSubOptions:
    if fields["format"] != FORMAT:
        raise ValueError("unknown format")
    access, match, exit = (int(fields[name]) for name in _SLICES)
    hosts = Hosts(**fields["hosts"]) if fields["hosts"] else None
    return PubSubOptions(
        access_slices=access,
        match_slices=match,
        exit_slices=exit,
        max_replicas=int(fields["max_replicas"]),
        hosts=hosts,
    )
