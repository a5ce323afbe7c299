"""Repartitions the state of a stopped query with Spark's private tool, which is called only here.

The tool adds an empty batch to the checkpoint, with the state in the new number of partitions. An
interrupted repartition can only be repeated with the same number.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from pyspark.sql import SparkSession

from penstock.engines.spark.recovery.checkpoints import PARTITIONS
from penstock.errors import RescaleError

#: Versions of Spark that were tested.
TESTED_VERSIONS = ((4, 2), (4, 3))
#: The state store that the tool supports, with changelog files for the changes of a batch.
STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: The store copies files only with Hadoop's local file system, whatever else is configured.
_FILES = {
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
#: A query copies the settings of the session when it starts; so one start at a time.
_start_lock = RLock()


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Apply settings to the session for queries started in this block."""
    with _start_lock:
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
    """Return the settings of a query with Spark's own state, in a session with that store."""
    return {**_FILES, PARTITIONS: str(partitions)}


def repartition(spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    """Repartition the state of a stopped query; `RescaleError` if Spark fails."""
    check_version(spark.version)
    manager = spark._streamingCheckpointManager
    try:
        with settings(spark, native_settings(partitions)):
            manager.repartition(str(checkpoint.resolve()), partitions)
    except Exception as error:
        first = str(error).partition("\n")[2].partition("\n")[0] or str(error)
        raise RescaleError(f"Spark could not repartition the state: {first.strip()}") from error


def use_in_this_thread(spark: SparkSession) -> None:
    """Make the session active in a new thread; Spark looks up data sources in it."""
    jvm, of_java = spark._jvm, spark._jsparkSession
    SparkSession._get_j_spark_session_class(jvm).setActiveSession(of_java)


def check_version(version: str) -> None:
    """Raise `RescaleError` for a version of Spark that was not tested.

    >>> check_version("4.3.0")
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) not in TESTED_VERSIONS:
        known = " and ".join(f"{major}.{minor}" for major, minor in TESTED_VERSIONS)
        raise RescaleError(
            f"repartitioning state was tested with Spark {known}, not with {version}:"
            " the operator keeps its replicas"
        )
