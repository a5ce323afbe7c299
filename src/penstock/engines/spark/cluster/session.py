"""A Spark session for many small batches: quick checkpoints, ready workers, a quiet terminal."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from shutil import rmtree

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.engines.spark.cluster import local_cluster
from penstock.engines.spark.cluster.jvm import LOOPBACK, kill_jvm, start_gateway
from penstock.engines.spark.cluster.masters import Master
from penstock.engines.spark.cluster.spark_home import link_home
from penstock.engines.spark.cluster.worker_imports import name_list
from penstock.engines.spark.io.sink import TopicTarget
from penstock.engines.spark.native_state.repartition import STORE

_STREAMING = "org.apache.spark.sql.execution.streaming"
#: Where Spark puts what it may forget: inside the run, so that a kill leaves nothing elsewhere.
_SCRATCH = "spark.local.dir"
#: Megabytes that Spark's log may take on disk.
LOG_MB = 10

SETTINGS = {
    # nobody but this machine is listened to, and nobody on it without the secret
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # without native Hadoop every checkpoint file would start processes that set its rights
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.daemon.module": "penstock.engines.spark.cluster.daemon",
    "spark.python.worker.reuse": "true",
    # a busy machine is slow to answer; how long a worker may take to connect cannot be set
    "spark.python.authenticate.socketTimeout": "120s",
    # a worker that crashes leaves its stack
    "spark.python.worker.faulthandler.enabled": "true",
    # an idle query asks its source ten times a second
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    # a file source lists every file it ever read: compact that list seldom, keep few old copies
    "spark.sql.streaming.fileSource.log.compactInterval": "100",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1min",
    # what a page would show of the last thousand batches, which nobody looks at here
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.adaptive.enabled": "false",
    # batches are bounded by time already; smaller Arrow batches only cost more
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.codegen.wholeStage": "true",
    **STORE,
    "spark.driver.memory": "2g",
    "spark.cleaner.periodicGC.interval": "5min",
}


def start_session(
    name: str,
    slots: int,
    log: Path,
    lock: int | None = None,
    master: Master | None = None,
    executors: int = 1,
    when_launched: Callable[[], None] = lambda: None,
) -> SparkSession:
    """Start a JVM of our own; what it has to say goes to a file.

    It inherits the run's lock and so keeps it until it is gone, even if this process is
    killed. A task that fails is tried three times. A cluster begins with so many executors;
    without one there are `slots`. `when_launched` is called as soon as the process is there:
    threads that begin earlier could hold a lock that the fork copies.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    scratch = log.resolve().with_suffix(".scratch")
    rmtree(scratch, ignore_errors=True)  # of a JVM that was killed
    scratch.mkdir(mode=0o700)
    conf = SparkConf(loadDefaults=False)
    master = master or Master(cores=slots)
    conf.setMaster(master.url).setAppName(name)
    own = {} if master.workers is None else local_cluster.settings(master, executors, scratch)
    for key, value in {**SETTINGS, **own}.items():
        conf.set(key, value)
    conf.set(_SCRATCH, str(scratch))
    conf.set("spark.driver.extraJavaOptions", f'{_logging(log)} "-Djava.io.tmpdir={scratch}"')
    name_list(preload_list(log))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with link_home(scratch / "home"), log.with_suffix(".out").open("ab") as stream:
        gateway = start_gateway(conf, scratch, stream, lock)
    if master.workers is not None:  # not before: settings of a start stand on a command line
        conf.set("spark.authenticate.secret", token_hex(32))
    try:
        when_launched()
        session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        session.dataSource.register(TopicTarget)
    except BaseException:
        kill_session()
        raise
    return session


def preload_list(log: Path) -> Path:
    """Where modules are listed that workers shall have from the beginning."""
    return log.resolve().with_suffix(".modules")


def end_session(session: SparkSession) -> None:
    """Stop the JVM, too: nothing is left behind."""
    gateway = SparkContext._gateway
    scratch = session.sparkContext.getConf().get(_SCRATCH)
    session.stop()
    if gateway is not None:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()  # the JVM ends when it can read no more
        try:
            process.wait(timeout=10)
        except Exception:
            kill_jvm()
        SparkContext._gateway = SparkContext._jvm = None
    if scratch is not None:
        rmtree(scratch, ignore_errors=True)


def kill_session() -> None:
    """End the JVM at once, also one that is just starting."""
    kill_jvm()
    SparkContext._gateway = SparkContext._jvm = None


def _logging(log: Path) -> str:
    """Return the option that sends the log to a file of bounded size."""
    settings = log.with_suffix(".properties")
    settings.write_text(
        f"""rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log.resolve()}
appender.file.filePattern = {log.resolve()}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {LOG_MB // 2}MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
logger.nobody.name = org.apache.spark.util.ShutdownHookManager
logger.nobody.level = off
""",
        encoding="utf-8",
    )
    return f"-Dlog4j2.configurationFile={settings.resolve().as_uri()}"
