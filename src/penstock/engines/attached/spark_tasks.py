"""What tasks did, read from Spark's status store, which exists without the web page, too.

All calls are private API of Spark, tested with Spark 4.3. What cannot be read is unknown: a query
is followed without it.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark import SparkContext

from penstock.engines.attached.task_facts import StageFacts, TaskFacts

_LOG = logging.getLogger(__name__)
#: Jobs, and stages of each, that are read at most; each costs some calls.
_MAX_JOBS, _MAX_STAGES = 3, 8
_DRIVER = "driver"
#: Seconds between two readings of the tasks of a query, or of all executors.
READ_S = 15.0
_NUMBER = re.compile(r"-?\d+")


class SparkTasks:
    """Reads the status store of one context."""

    def __init__(self, context: SparkContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next = clock, dict[str, float]()
        java: Any = context._jsc
        self._store, self._tracker = java.sc().statusStore(), java.statusTracker()
        gateway: Any = context._gateway
        self._arrays: Any = gateway.jvm.java.util.Arrays
        #: Arrays.toString takes no arrays of a class from Python, only those of numbers.
        self._printer: Any = gateway.jvm.scala.runtime.ScalaRunTime
        self._quantiles = gateway.new_array(gateway.jvm.double, 2)
        self._quantiles[0], self._quantiles[1] = 0.5, 1.0
        self._last_job: dict[str, int] = {}

    def read(self, run_id: str) -> TaskFacts | None:
        """Return what tasks did in the heaviest of the last jobs of a run; None if unknown.

        It costs dozens of calls, so it is not read for every batch.
        """
        if not self._is_due(run_id):
            return None
        try:
            facts = [TaskFacts(stages=tuple(self._read_stages(job))) for job in self._jobs(run_id)]
        except Exception as error:  # not there any more, or another version of Spark
            _LOG.debug("tasks of %s are unknown: %s", run_id, error)
            return None
        return max((job for job in facts if job.stages), key=lambda job: job.run_s, default=None)

    def _is_due(self, what: str) -> bool:
        now = self._clock()
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = now + READ_S
        return True

    def _jobs(self, run_id: str) -> list[Any]:
        """Return the jobs that have ended since the last call, the newest ones only."""
        numbers = sorted(self._read_numbers(self._tracker.getJobIdsForGroup(run_id)))
        new = [job for job in numbers if job > self._last_job.get(run_id, -1)][-_MAX_JOBS:]
        infos = {job: self._tracker.getJobInfo(job) for job in new}
        ended = [job for job in new if _has_ended(infos[job])]
        self._last_job[run_id] = max(ended, default=self._last_job.get(run_id, -1))
        return [infos[job] for job in ended]

    def _read_stages(self, job: Any) -> Iterator[StageFacts]:
        for number in self._read_numbers(job.stageIds())[-_MAX_STAGES:]:
            stage = self._store.lastStageAttempt(number)
            tasks = int(stage.numCompleteTasks())
            if not tasks:  # skipped: its output was there already
                continue
            summary = self._store.taskSummary(number, stage.attemptId(), self._quantiles)
            times = summary.get().executorRunTime() if summary.isDefined() else None
            yield StageFacts(
                tasks=tasks,
                run_s=stage.executorRunTime() / 1000,
                cpu_s=stage.executorCpuTime() / 1e9,
                median_s=times.apply(0) / 1000 if times is not None else 0.0,
                longest_s=times.apply(1) / 1000 if times is not None else 0.0,
                failed=int(stage.numFailedTasks()),
            )

    def read_reports(self, array: Any) -> list[dict[str, Any]]:
        """Read an array of progress reports, which print themselves as JSON, in one call."""
        try:
            text = str(self._printer.stringOf(array)).removeprefix("Array(").removesuffix(")")
            return list(json.loads(f"[{text}]"))
        except Exception as error:  # another version prints them in another way
            _LOG.debug("reports are read one by one: %s", error)
            return [json.loads(array[number].json()) for number in range(len(array))]

    def _read_numbers(self, array: Any) -> list[int]:
        """Read an array of Java in one call; an application keeps a thousand jobs."""
        return [int(number) for number in _NUMBER.findall(str(self._arrays.toString(array)))]

    def count_by_executor(self) -> Mapping[str, int]:
        """Return the tasks that each live executor has run; empty if they were read just now."""
        if not self._is_due(_DRIVER):
            return {}
        try:
            return {name: int(executor.totalTasks()) for name, executor in self._executors()}
        except Exception as error:
            _LOG.debug("tasks of executors are unknown: %s", error)
            return {}

    def count_active(self) -> Mapping[str, int]:
        """Return the tasks that run on each live executor."""
        return {name: int(executor.activeTasks()) for name, executor in self._executors()}

    def count_cores(self) -> int:
        """Return the task slots of one executor: the most that one has, or those of local mode."""
        try:
            return max((int(executor.maxTasks()) for _, executor in self._all()), default=1) or 1
        except Exception as error:
            _LOG.debug("cores of executors are unknown: %s", error)
            return 1

    def _executors(self) -> Iterator[tuple[str, Any]]:
        return ((name, executor) for name, executor in self._all() if name != _DRIVER)

    def _all(self) -> Iterator[tuple[str, Any]]:
        """Yield executors, and the driver, which has slots for tasks in local mode only."""
        executors = self._store.executorList(True)
        for number in range(executors.size()):
            yield str(executors.apply(number).id()), executors.apply(number)


def _has_ended(job: Any) -> bool:
    return job is not None and str(job.status().toString()) == "SUCCEEDED"
