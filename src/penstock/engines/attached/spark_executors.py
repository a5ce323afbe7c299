"""Calls to Spark about the executors of a session that Penstock did not start."""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engines.attached.spark_tasks import SparkTasks
from penstock.engines.spark.cluster.executor_client import ExecutorClient

if TYPE_CHECKING:
    import pyarrow as pa

#: Prefix of a location that means one executor on any host.
_BOUND_TO = "executor_nowhere_"
#: Seconds for which a warm-up task keeps its slot, so that every slot gets one.
_OCCUPY_S = 0.5


class SparkExecutors(ExecutorClient):
    """Executors of a session with any settings."""

    def __init__(self, spark: SparkSession, *, has_python: bool) -> None:
        """`has_python` if queries need Python workers, which are warmed up then."""
        super().__init__(spark)
        self._tasks, self._has_python = SparkTasks(spark.sparkContext), has_python
        self._slots = self._tasks.count_cores()

    def count_active_tasks(self) -> Mapping[str, int]:
        """Return the tasks that run on each executor."""
        return self._tasks.count_active()

    def kill(self, names: Iterable[str]) -> None:
        """End these executors at once. Spark lowers the total that it keeps up."""
        self._context.killExecutors(self._seq(list(names)))

    def warm_up(self, names: Iterable[str]) -> None:
        """Run a short task in every slot of these executors, in the background.

        The query's first tasks there would otherwise wait for classes to load and for Python
        workers to start.
        """
        bound = [name for name in names for _ in range(self._slots)]
        pairs = [self._jvm.scala.Tuple2(name, self._seq([f"{_BOUND_TO}{name}"])) for name in bound]
        text = self._jvm.java.lang.Class.forName("java.lang.String")
        rows = self._context.makeRDD(self._seq(pairs), self._jvm.scala.reflect.ClassTag.apply(text))
        session, encoders = self._spark._jsparkSession, self._jvm.org.apache.spark.sql.Encoders
        frame = DataFrame(session.createDataset(rows, encoders.STRING()).toDF(), self._spark)
        threading.Thread(target=_run, args=(frame, self._has_python), daemon=True).start()


def _run(frame: DataFrame, has_python: bool) -> None:
    occupy_s = _OCCUPY_S

    # defined here, so that executors without Penstock can load it
    def occupy(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            time.sleep(occupy_s)
            yield batch

    with suppress(Exception):  # a cold executor is only slow
        (frame.mapInArrow(occupy, frame.schema) if has_python else frame).count()


def needs_python(query: Any) -> bool:
    """Whether the plan of a query calls Python."""
    with suppress(Exception):
        plan = str(query._jsq.explainInternal(False))
        return any(word in plan for word in ("Python", "InPandas", "InArrow", "ForeachBatch"))
    return True
