"""Fills a topic with rows as a workload offers them, outside of any run."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, get_args

import numpy as np
import pyarrow as pa

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, nearest
from penstock.pipelines import record_draws as draws
from penstock.pipelines.function_call import call_producer, fit_producer
from penstock.pipelines.loader import load_file
from penstock.pipelines.topic_declaration import MakeRows
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.topics.schema import parse_schema
from penstock.workloads.expression import NamedPart, parse
from penstock.workloads.pattern import ArrivalName
from penstock.workloads.registry import find_pattern, make_workload

#: The name under which rows are published.
WRITER = "producer"
#: Plain rows: a number, a value, a key. The same number always gives the same row.
SCHEMA = parse_schema("id long, value double, key long")
KEYS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceSpec:
    """The options of `penstock produce`."""

    workload: str
    to: str
    rows: str | None
    minutes: float | None
    seed: int
    speed_up: float
    rate_scale: float
    arrivals: str | None
    #: Whether everything is due at once.
    at_once: bool


class ProductionFigures(TypedDict):
    """What was produced, how fast, and how late the latest record was."""

    topic: str
    records: int
    seconds: float
    rate: float
    #: None if the records were not written at their due times.
    worst_lag_s: float | None


def produce(spec: ProduceSpec, show: Callable[[WorkProgress], None]) -> ProductionFigures:
    """Fill the topic, and return the figures."""
    load = make_workload(spec.workload, spec.minutes, spec.seed)
    load = (load * spec.rate_scale).sped_up(spec.speed_up)
    arrivals = _arrivals(spec)
    make = plain_rows(spec.seed) if spec.rows is None else _function(spec.rows)
    # one row shows the columns
    schema = call_producer(make, 0, pa.array([0], TIMESTAMP)).schema
    topic = Topic.create(Path(spec.to), schema)
    held = topic.end

    def watch(producer: Producer) -> None:
        # with random arrivals the number is unknown before the end
        total = max(load.total_records, held + producer.produced)
        show(WorkProgress(total=total, kept=held, done=producer.produced))

    show(WorkProgress(total=max(load.total_records, held), kept=held, done=0))
    with TopicWriter(topic, WRITER) as writer:
        producer = Producer(
            writer, fit_producer(make, schema), load, arrivals=arrivals, seed=spec.seed
        )
        began_s = time.monotonic()
        begin_at = time.time() - load.duration_s if spec.at_once else None
        producer.run(begin_at=begin_at, watch=watch)
        seconds = time.monotonic() - began_s
    if producer.produced:
        show(WorkProgress(total=topic.end, kept=held, done=producer.produced))
    return {
        "topic": str(topic.directory),
        "records": producer.produced,
        "seconds": seconds,
        "rate": producer.produced / seconds,
        # what was due long ago is late by design
        "worst_lag_s": None if spec.at_once else producer.worst_lag_s,
    }


def _arrivals(spec: ProduceSpec) -> ArrivalName:
    tree = parse(spec.workload)
    own: ArrivalName = (
        find_pattern(tree.name).arrivals if isinstance(tree, NamedPart) else "deterministic"
    )
    known: tuple[ArrivalName, ...] = get_args(ArrivalName)
    for kind in known:
        if kind == (spec.arrivals or own):
            return kind
    problem = f"unknown arrival process {spec.arrivals!r}"
    raise InputError("--arrivals", problem, nearest(str(spec.arrivals), known))


def _function(text: str) -> MakeRows:
    """Find the function of `FILE.py:function`."""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py"):
        raise InputError("--rows", f"must be FILE.py:function, got {text!r}")
    module = load_file(Path(file))
    make: MakeRows | None = getattr(module, name, None)
    if not callable(make):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise InputError("--rows", f"there is no function {name!r}", nearest(name, functions), file)
    return make


def plain_rows(seed: int) -> Callable[[int, pa.Array], pa.Table]:
    """Return a function that makes plain rows; values are uniform from 0 to 1, keys too.

    >>> rows = plain_rows(seed=1)(7, pa.nulls(3))
    >>> rows.slice(1, 1) == plain_rows(seed=1)(8, pa.nulls(1))
    True
    """

    def make(first_id: int, due: pa.Array) -> pa.Table:
        ids = np.arange(first_id, first_id + len(due))
        values = draws.uniform(ids, f"value, seed {seed}")
        keys = draws.pick(ids, f"key, seed {seed}", KEYS)
        return pa.table([ids, values, keys], schema=SCHEMA)

    return make
