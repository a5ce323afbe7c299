"""Counts the records of a finished run in its topics.

No counter of the engine is trusted. Where a record carries its number in a column `id` from its
source to a last topic, each number must be there once; elsewhere rows can only be counted. Last
topics are those that no operator reads, so their retention keeps all of their rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic

ID = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastTopic:
    """What was found in one topic at the end of a pipeline."""

    topic: str
    rows: int
    #: By number: None where rows carry none, or several paths lead here.
    missing: int | None = None
    doubled: int | None = None
    #: Rows whose number was never offered.
    strange: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCounts:
    """All records of a run."""

    #: Rows that ever came into the topics at the beginning.
    offered: int
    topics: tuple[LastTopic, ...]
    #: Numbers that are in every last topic that has numbers; None if they cannot be followed.
    complete: int | None
    #: Rows that an operator failed on and put aside.
    put_aside: int = 0

    @property
    def missing(self) -> int | None:
        """Numbers that are not in every last topic: lost, dropped, left out or still waiting."""
        return None if self.complete is None else self.offered - self.complete

    @property
    def doubled(self) -> int | None:
        """Rows whose number was there already."""
        known = [topic.doubled for topic in self.topics if topic.doubled is not None]
        return sum(known) if known else None

    @property
    def strange(self) -> int:
        """Rows with numbers that were never offered."""
        return sum(topic.strange or 0 for topic in self.topics)


def count_records(pipeline: Pipeline, topics: Path) -> RecordCounts:
    """Count the records of a run whose topics are in this directory."""
    firsts = {name: _open(topics / name) for name in first_topics(pipeline)}
    offered = sum(topic.end for topic in firsts.values() if topic)
    counts, seen = [], []
    for name in last_topics(pipeline):
        topic = _open(topics / name)
        if topic is None:
            counts.append(LastTopic(topic=name, rows=0))
            continue
        source = _only_source(pipeline, name)
        numbered = firsts.get(source) if source else None
        if numbered is None or not (_has_numbers(numbered) and _has_ids(topic)):
            counts.append(LastTopic(topic=name, rows=topic.end))
            continue
        there, known = _numbers(topic, numbered.end)
        seen.append(there)
        distinct = int(there.sum())
        counts.append(
            LastTopic(
                topic=name,
                rows=topic.end,
                missing=numbered.end - distinct,
                doubled=known - distinct,
                strange=topic.end - known,
            )
        )
    aside = (_open(topics / name) for name in _errors(pipeline))
    return RecordCounts(
        offered=offered,
        topics=tuple(counts),
        complete=int(np.logical_and.reduce(seen).sum()) if seen and len(firsts) == 1 else None,
        put_aside=sum(topic.end for topic in aside if topic),
    )


def first_topics(pipeline: Pipeline) -> tuple[str, ...]:
    """Topics that records come into: produced, external, or read from outside."""
    filled = {t for op in pipeline.operators.values() if op.reads for t in op.fills}
    return tuple(name for name in pipeline.topics if name not in filled)


def readers_of(pipeline: Pipeline) -> list[tuple[str, ...]]:
    """For each topic that records come into, the operators that read it."""
    operators = pipeline.operators.values()
    readers = [
        tuple(o.name for o in operators if topic in o.reads) for topic in first_topics(pipeline)
    ]
    return [names for names in readers if names]


def last_topics(pipeline: Pipeline) -> tuple[str, ...]:
    """Topics for whose rows the pipeline was built: written by an operator, and read by none."""
    read = {name for op in pipeline.operators.values() for name in op.reads}
    operators = [op for op in pipeline.operators.values() if op.reads]
    return tuple(name for op in operators for name in op.outputs if name not in read)


def _only_source(pipeline: Pipeline, topic: str) -> str | None:
    """The topic at the beginning of the one path that leads here; None if there are several.

    Further outputs of an operator have none: which records belong there is up to its function.
    """
    writers: Mapping[str, Operator] = {
        topic: op for op in pipeline.operators.values() if op.reads for topic in op.outputs
    }
    here = topic
    while here in writers:
        reads = writers[here].reads
        if len(reads) != 1 or here in writers[here].extra_outputs:
            return None
        here = reads[0]
    return here


def _errors(pipeline: Pipeline) -> set[str]:
    """Topics for the rows that operators fail on."""
    return {topic for op in pipeline.operators.values() for topic in op.error_topics}


def _open(directory: Path) -> Topic | None:
    return Topic.open(directory) if directory.is_dir() else None


def _has_ids(topic: Topic) -> bool:
    index = topic.schema.get_field_index(ID)
    return index >= 0 and pa.types.is_integer(topic.schema.field(index).type) and topic.first == 0


def _has_numbers(source: Topic) -> bool:
    """Whether the ids of a source are the numbers of its rows, judged by the rows still there."""
    index = source.schema.get_field_index(ID)
    if index < 0 or not pa.types.is_integer(source.schema.field(index).type):
        return False
    offset = source.first
    for ids in _ids(source, offset):
        if not np.array_equal(ids, np.arange(offset, offset + len(ids))):
            return False
        offset += len(ids)
    return True


def _numbers(topic: Topic, offered: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Which of the numbers that were offered are there, and how many rows have one of them."""
    there = np.zeros(offered, dtype=bool)
    rows = 0
    for ids in _ids(topic, 0):
        known = ids[(ids >= 0) & (ids < offered)]
        rows += len(known)
        there[known] = True
    return there, rows


def _ids(topic: Topic, start: int) -> Iterator[npt.NDArray[np.int64]]:
    for batch in topic.read(start, topic.end, [ID]):
        column = batch.column(0)
        yield column.drop_null().to_numpy(zero_copy_only=False)
