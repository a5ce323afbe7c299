"""Applies a function to many items on the executors of a Spark cluster, as one job."""

import pickle
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pyspark import AccumulatorParam, cloudpickle
from pyspark.sql import SparkSession

from penstock.engines.spark.cluster.masters import Master
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.errors import PenstockError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
#: The job is over: all answers are there, or it failed for this reason.
_End = BaseException | None


def map_on_cluster(
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    master: Master,
    executors: int,
    log: Path,
) -> Iterator[tuple[int, Answer]]:
    """Apply a module-level function to each item in a task of its own; yield (index, result).

    Results are yielded when their tasks end. Executors must find Penstock, and the files that
    items name, at the same paths. `log` is the file of Spark's log.
    """
    if not items:
        return
    slots = master.cores * executors
    session = start_session("penstock lab", slots, log, master=master, executors=executors)
    try:
        yield from _answers(session, function, items)
    finally:
        end_session(session)


def _answers(
    session: SparkSession, function: Callable[[Item], Answer], items: Sequence[Item]
) -> Iterator[tuple[int, Answer]]:
    """Run the job in a thread; tasks send their answers through an accumulator."""
    answers: queue.SimpleQueue[tuple[int, Any] | _End] = queue.SimpleQueue()
    context = session.sparkContext
    # a task that is tried again counts once: its answer arrives when it succeeds
    sent = context.accumulator([], _AnswerQueue(answers))
    call = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    rows = context.parallelize(list(enumerate(items)), len(items))

    def answer(row: tuple[int, Any]) -> None:
        index, item = row
        sent.add([(index, pickle.loads(call)(item))])

    def run() -> None:
        try:
            rows.foreach(answer)
        except BaseException as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=run, name="lab-job", daemon=True).start()
    while True:
        got = answers.get()
        if got is None:
            return
        if isinstance(got, BaseException):
            problem = f"the job on the cluster failed ({type(got).__name__})"
            raise PenstockError(f"{problem}; the same command resumes") from got
        yield got


class _AnswerQueue(AccumulatorParam[list[tuple[int, Any]]]):
    """Passes on what a task has added, in the driver, as soon as the task has ended."""

    def __init__(self, answers: "queue.SimpleQueue[Any] | None") -> None:
        self._answers = answers

    def zero(self, value: list[tuple[int, Any]]) -> list[tuple[int, Any]]:  # noqa: ARG002
        """Return an empty list."""
        return []

    def addInPlace(  # noqa: N802  (Spark's name)
        self, value1: list[tuple[int, Any]], value2: list[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        """In a task, collect; in the driver, pass on."""
        if self._answers is None:
            return [*value1, *value2]
        for answer in value2:
            self._answers.put(answer)
        return []

    def __reduce__(self) -> tuple[type["_AnswerQueue"], tuple[None]]:
        return _AnswerQueue, (None,)
