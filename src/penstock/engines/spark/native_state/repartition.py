"""Spark's tool that deals the state of a stopped query anew. Its door is private: only here.

It adds a batch to the checkpoint that reads nothing and has the state in so many parts. Cut
short, it can only be asked for the same number again.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from pyspark.sql import SparkSession

from penstock.engines.spark.recovery.checkpoints import PARTITIONS
from penstock.errors import RescaleError

#: Versions of Spark whose tool was tried.
TRIED = ((4, 2), (4, 3))
#: The store of state that the tool can read, and small files for what a batch changes.
STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: That store copies files with Hadoop's own local file system only, whatever else is set.
_FILES = {
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
#: A query keeps the settings of the session that it is started with; one start at a time.
_one_at_a_time = RLock()


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Have settings in a session for what is started now, and for nothing else."""
    with _one_at_a_time:
        usual = {name: spark.conf.get(name, None) for name in wanted}
        for name, value in wanted.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, before in usual.items():
                if before is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, before)


def native_settings(partitions: int) -> dict[str, str]:
    """What a query with Spark's own state is started with, in a session with that store."""
    return {**_FILES, PARTITIONS: str(partitions)}


def repartition(spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    """Cut the state of a stopped query into so many parts; `RescaleError` if Spark cannot."""
    check_version(spark.version)
    manager = spark._streamingCheckpointManager
    try:
        with settings(spark, native_settings(partitions)):
            manager.repartition(str(checkpoint.resolve()), partitions)
    except Exception as error:
        first = str(error).partition("\n")[2].partition("\n")[0] or str(error)
        raise RescaleError(f"Spark could not deal the state anew: {first.strip()}") from error


def use_in_this_thread(spark: SparkSession) -> None:
    """Let Spark know the session in a new thread; data sources are looked up in it."""
    jvm, of_java = spark._jvm, spark._jsparkSession
    SparkSession._get_j_spark_session_class(jvm).setActiveSession(of_java)


def check_version(version: str) -> None:
    """Refuse a Spark whose tool nobody has tried.

    >>> check_version("4.3.0")
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) not in TRIED:
        known = " and ".join(f"{major}.{minor}" for major, minor in TRIED)
        raise RescaleError(
            f"Spark {version} may deal state anew in another way than {known}, which were tried:"
            " the operator keeps its replicas"
        )
