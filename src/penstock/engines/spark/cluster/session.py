"""A Spark session for many small batches: fast checkpoints, warm workers, no console output."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from penstock.engines.spark.cluster.jvm import LOOPBACK, kill_jvm, link_home, start_gateway
from penstock.engines.spark.cluster.masters import Master, executor_settings
from penstock.engines.spark.cluster.worker_process import VARIABLE, set_module_list
from penstock.engines.spark.io.sink import TopicTarget
from penstock.engines.spark.native_state.repartition import STORE
from penstock.errors import InputError

_STREAMING = "org.apache.spark.sql.execution.streaming"
#: Scratch directory of Spark: inside the run, so that a kill leaves no files elsewhere.
_SCRATCH = "spark.local.dir"
#: The Python of executors.
_PYTHON = "spark.pyspark.python"
#: The maximum size of Spark's log on disk, in megabytes.
MAX_LOG_MB = 10

#: The same file system for a session on an existing context, whatever it has cached.
_LOCAL_FILES = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}

#: Accept connections from this machine only.
_THIS_MACHINE = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}

SETTINGS = {
    # accept connections with the secret only
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # without native Hadoop every checkpoint file would start processes to set its permissions
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.daemon.module": "penstock.engines.spark.cluster.daemon",
    "spark.python.worker.reuse": "true",
    # for busy machines; the connect timeout of a worker cannot be configured
    "spark.python.authenticate.socketTimeout": "120s",
    # a crashing worker prints its stack
    "spark.python.worker.faulthandler.enabled": "true",
    # an idle query polls its source ten times a second
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    # a file source lists every file it ever read: compact that list seldom, keep few old copies
    "spark.sql.streaming.fileSource.log.compactInterval": "100",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1min",
    # history for the web UI, which is disabled
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
    """Start a JVM and a session; its output goes to a file.

    The JVM inherits the run's lock and holds it until it ends, even if this process is killed. A
    failed task is tried three times. A cluster starts with `executors` executors; local mode has
    `slots` task slots. `when_launched` is called once the process is running: threads that start
    earlier could hold a lock that the fork copies.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    scratch = log.resolve().with_suffix(".scratch")
    shutil.rmtree(scratch, ignore_errors=True)  # left by a killed JVM
    scratch.mkdir(mode=0o700)
    conf = SparkConf(loadDefaults=False)
    master = master or Master(cores=slots)
    conf.setMaster(master.url).setAppName(name)
    place = _THIS_MACHINE if master.is_on_this_machine else {}
    extra = executor_settings(master, executors, scratch) if master.has_executors else {}
    for key, value in {**SETTINGS, **place, **extra}.items():
        conf.set(key, value)
    conf.set(_SCRATCH, str(scratch))
    conf.set("spark.driver.extraJavaOptions", f'{_logging(log)} "-Djava.io.tmpdir={scratch}"')
    set_module_list(module_list(log))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.cluster:  # executors there do not inherit this environment
        os.environ["PYSPARK_PYTHON"] = master.settings.get(_PYTHON, sys.executable)
        conf.set(f"spark.executorEnv.{VARIABLE}", str(module_list(log)))
    address = LOOPBACK if master.is_on_this_machine else None
    with link_home(scratch / "home"), log.with_suffix(".out").open("ab") as stream:
        gateway = start_gateway(conf, scratch, stream, lock, address)
    if master.workers is not None:  # only now: start settings are visible on the command line
        conf.set("spark.authenticate.secret", token_hex(32))
    try:
        when_launched()
        session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        session.dataSource.register(TopicTarget)
    except BaseException:
        kill_session()
        raise
    return session


def borrow_session(session: SparkSession) -> SparkSession:
    """Return a copy of an existing session, on its context, with the settings of runs.

    The copy has the views and functions of the existing session, which stays as it is: settings,
    sources and queries are separate. Settings of the context cannot change any more, so workers
    start without the modules imported in advance.
    """
    mine = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    for key, value in {**SETTINGS, **_LOCAL_FILES}.items():
        if mine.conf.isModifiable(key) or key in _LOCAL_FILES:
            mine.conf.set(key, value)
    mine.dataSource.register(TopicTarget)
    return mine


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread: Spark looks up Python data sources there."""
    sessions = SparkSession._get_j_spark_session_class(session._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def task_slots(session: SparkSession) -> int:
    """Return how many tasks a session runs at once; `InputError` if it is not a classic one."""
    if not isinstance(session, SparkSession) or is_remote():
        problem = f"must be a classic SparkSession, got {type(session).__module__}"
        raise InputError("spark", problem, "Spark Connect sessions cannot run Python sources here")
    context = session.sparkContext
    workers = shutil.which(context.pythonExec)
    if str(context.master).startswith("local") and not _is_same_python(workers):
        problem = f"its workers use {context.pythonExec}, which is not {sys.executable}"
        hint = "set the environment variable PYSPARK_PYTHON to sys.executable before Spark starts"
        raise InputError("spark", problem, hint)
    return context.defaultParallelism


def _is_same_python(path: str | None) -> bool:
    """Whether a Python is in the directory of this one, so has the same packages."""
    return path is not None and Path(path).absolute().parent == Path(sys.executable).parent


def module_list(log: Path) -> Path:
    """Return the path of the list of modules that the daemon imports."""
    return log.resolve().with_suffix(".modules")


def end_session(session: SparkSession) -> None:
    """Stop the session and its JVM, and remove the scratch directory."""
    gateway = SparkContext._gateway
    scratch = session.sparkContext.getConf().get(_SCRATCH)
    session.stop()
    if gateway is not None:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()  # the JVM ends when its standard input closes
        try:
            process.wait(timeout=10)
        except Exception:
            kill_jvm()
        SparkContext._gateway = SparkContext._jvm = None
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)


def kill_session() -> None:
    """Kill the JVM, even one that is still starting."""
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
appender.file.policies.size.size = {MAX_LOG_MB // 2}MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
logger.shutdown.name = org.apache.spark.util.ShutdownHookManager
logger.shutdown.level = off
""",
        encoding="utf-8",
    )
    return f"-Dlog4j2.configurationFile={settings.resolve().as_uri()}"
