"""Lists, requests, warms up and releases the executors of a Spark application.

Spark has no public Python API for this; all private calls are in this file. Tested with Spark 4.3.
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engines.spark.cluster.worker_pool import warm_up

#: Prefix of a location that means one executor on any host.
_BOUND_TO = "executor_nowhere_"


class ExecutorClient:
    """The executors of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, context = spark, spark.sparkContext
        self._jvm: Any = context._jvm
        self._context: Any = context._jsc.sc()
        self._backend: Any = self._context.schedulerBackend()
        self._cores = int(context.getConf().get("spark.executor.cores") or 1)

    def alive(self) -> dict[str, bool]:
        """Return the live executors, oldest first, and whether each one stays (is not released)."""
        ids = self._backend.getExecutorIds()
        names = sorted((str(ids.apply(number)) for number in range(ids.size())), key=int)
        return {name: bool(self._backend.isExecutorActive(name)) for name in names}

    def request_total(self, total: int) -> None:
        """Request this many executors in total, including starting ones; none is released."""
        nothing = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
            self._jvm.java.util.HashMap()
        )
        self._context.requestTotalExecutors(total, 0, nothing)

    def warm_up_new(self, new_ids: Iterable[int]) -> None:
        """Start workers on executors as soon as they register, with tasks bound to their ids.

        Spark schedules tasks on an executor as soon as it registers, and the first ones would wait
        for seconds until the daemon has imported everything. The tasks submitted here are
        scheduled first. One task is bound to a live executor, because otherwise Spark would not
        wait for the others; if they do not register, it stops waiting after a while.
        """
        oldest = next(iter(self.alive()), "")
        names = [oldest, *(str(number) for number in new_ids for _ in range(self._cores))]
        pairs = [
            self._jvm.scala.Tuple2(
                "" if name == oldest else name, self._seq([f"{_BOUND_TO}{name}"])
            )
            for name in names
        ]
        text = self._jvm.java.lang.Class.forName("java.lang.String")
        bound = self._context.makeRDD(
            self._seq(pairs), self._jvm.scala.reflect.ClassTag.apply(text)
        )
        # not through a Python RDD, for which Spark would start another daemon
        session, strings = self._spark._jsparkSession, self._jvm.org.apache.spark.sql.Encoders
        rows = DataFrame(session.createDataset(bound, strings.STRING()).toDF(), self._spark)
        threading.Thread(target=_try_to_warm, args=(rows,), daemon=True).start()

    def _seq(self, items: Sequence[object]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(items))

    def release(self, names: Iterable[str]) -> None:
        """Release these executors: they get no more tasks, and each exits when its tasks are done.

        Request a lower total first, or Spark replaces them.
        """
        unknown_host = self._jvm.scala.Option.apply(None)
        reason = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "not needed any more", unknown_host
        )
        for name in names:
            self._backend.decommissionExecutor(name, reason, False, False)


def _try_to_warm(rows: DataFrame) -> None:
    with suppress(Exception):  # the session may end meanwhile; a cold executor is only slow
        warm_up(rows)
