"""Checks that executors of a cluster read and write the run directory: topics are files in it."""

import socket
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import InputError

_HINT = "put the run directory (--out DIR) on a file system that all machines of the cluster share"
#: What a task answers if all is well; otherwise the reason.
_FINE = ""


def check_shared(spark: SparkSession, directory: Path, tasks: int) -> None:
    """Raise `InputError` if a task does not see a file that was written here, or cannot write."""
    question = directory / f"shared-{token_hex(8)}"
    text, path = token_hex(16), str(question)

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = [_look(Path(path), text, number) for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"problem": answers})

    question.write_text(text, encoding="utf-8")
    try:
        numbers = spark.range(0, tasks, 1, tasks)
        answers = numbers.mapInArrow(look, "problem string").collect()
    finally:
        for file in directory.glob(f"{question.name}*"):
            file.unlink(missing_ok=True)
    for answer in answers:
        if answer.problem != _FINE:
            raise InputError("out", answer.problem, _HINT, str(directory))


def _look(question: Path, text: str, number: int) -> str:
    """Read the file and write one beside it; return what is wrong."""
    try:
        if question.read_text(encoding="utf-8") != text:
            return f"host {socket.gethostname()} has another directory of that name"
        question.with_name(f"{question.name}-{number}").touch()
    except OSError as error:
        return f"host {socket.gethostname()} cannot use it: {error.strerror}"
    return _FINE
