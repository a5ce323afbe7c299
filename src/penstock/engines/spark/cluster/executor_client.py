"""The executors of a Spark application: counted, asked for, welcomed, sent home.

Spark has no public way to do so from Python: all that is private of it is in this file. Tried
with Spark 4.3.
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engines.spark.cluster.worker_pool import warm_up

#: What a place is called that is one executor and nothing else, whatever its host.
_TIED_TO = "executor_nowhere_"


class ExecutorClient:
    """The executors of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, context = spark, spark.sparkContext
        self._jvm: Any = context._jvm
        self._context: Any = context._jsc.sc()
        self._backend: Any = self._context.schedulerBackend()
        self._cores = int(context.getConf().get("spark.executor.cores") or 1)

    def alive(self) -> dict[str, bool]:
        """Those that are there, oldest first, and whether each stays or is about to leave."""
        found = self._backend.getExecutorIds()
        names = sorted((str(found.apply(number)) for number in range(found.size())), key=int)
        return {name: bool(self._backend.isExecutorActive(name)) for name in names}

    def ask_for(self, total: int) -> None:
        """Ask for so many in all; those that are on their way count, none is sent home."""
        nothing = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
            self._jvm.java.util.HashMap()
        )
        self._context.requestTotalExecutors(total, 0, nothing)

    def welcome(self, newcomers: Iterable[int]) -> None:
        """Let the first tasks of new executors be such that start workers, and hurt nobody.

        Spark gives tasks to an executor in the moment in which it is there, and the first of them
        would wait for seconds until a daemon has imported everything. These come before: what
        was asked for earlier is served earlier. One task is for an executor that lives, or
        Spark would not wait for the others' at all; if they do not come, it waits for a while.
        """
        oldest = next(iter(self.alive()), "")
        names = [oldest, *(str(number) for number in newcomers for _ in range(self._cores))]
        pairs = [
            self._jvm.scala.Tuple2("" if name == oldest else name, self._seq([f"{_TIED_TO}{name}"]))
            for name in names
        ]
        text = self._jvm.java.lang.Class.forName("java.lang.String")
        tied = self._context.makeRDD(self._seq(pairs), self._jvm.scala.reflect.ClassTag.apply(text))
        # not through an RDD of Python's, for which Spark would start another daemon
        session, strings = self._spark._jsparkSession, self._jvm.org.apache.spark.sql.Encoders
        rows = DataFrame(session.createDataset(tied, strings.STRING()).toDF(), self._spark)
        threading.Thread(target=_try_to_warm, args=(rows,), daemon=True).start()

    def _seq(self, items: Sequence[object]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(items))

    def send_home(self, names: Iterable[str]) -> None:
        """Give these no more tasks; each leaves when those that it has are done.

        First ask for fewer, or others will come in their places.
        """
        unknown_host = self._jvm.scala.Option.apply(None)
        why = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "not needed any more", unknown_host
        )
        for name in names:
            self._backend.decommissionExecutor(name, why, False, False)


def _try_to_warm(rows: DataFrame) -> None:
    with suppress(Exception):  # the session may end meanwhile; who is not warm is only slow
        warm_up(rows)
