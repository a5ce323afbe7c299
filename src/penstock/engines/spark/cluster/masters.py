"""Where Spark runs: master URLs, settings of executors, and the check for Java."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError

#: The least memory with which Spark starts an executor, in megabytes.
MIN_MB = 512
_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_LOCAL = re.compile(r"local\[\s*(\d+)\s*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """Where replicas run: one process, or workers with one executor each."""

    #: None: one process without executors.
    workers: int | None = None
    #: Concurrent tasks, per executor or of the process.
    cores: int
    memory_mb: int = 0

    @property
    def url(self) -> str:
        """The master URL for Spark. A task is tried three times."""
        if self.workers is None:
            return f"local[{self.cores},3]"
        return f"local-cluster[{self.workers},{self.cores},{self.memory_mb}]"


def parse_master(text: str) -> Master:
    """Parse the value of `--master`.

    >>> parse_master("local-cluster[4,1,1024]").workers
    4
    """
    if match := _LOCAL.fullmatch(text.strip()):
        master = Master(cores=int(match[1]))
    elif match := _CLUSTER.fullmatch(text.strip()):
        workers, cores, memory_mb = map(int, match.groups())
        master = Master(workers=workers, cores=cores, memory_mb=memory_mb)
    else:
        hint = "local[8], or local-cluster[4,1,1024]: workers, cores and megabytes of each"
        raise InputError("--master", f"cannot be read: {text!r}", hint)
    if not master.cores or master.workers == 0:
        raise InputError("--master", f"needs at least one worker and one core, got {text!r}")
    if master.workers is not None and master.memory_mb < MIN_MB:
        problem = f"{master.memory_mb} MB are too few for an executor"
        raise InputError("--master", problem, f"at least {MIN_MB}")
    return master


def parse_executors(text: str | None, master: Master | None) -> tuple[int, int] | None:
    """Parse the value of `--executors` to (min, max); None in local mode.

    >>> parse_executors("1:3", parse_master("local-cluster[4,1,1024]"))
    (1, 3)
    """
    if master is None or master.workers is None:
        if text is None:
            return None
        problem = "there are no executors in local mode: all replicas share one process"
        raise InputError("--executors", problem, "add --master 'local-cluster[4,1,1024]'")
    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text or f"1:{master.workers}")
    if match is None:
        raise InputError("--executors", f"cannot be read: {text!r}", "LOW:HIGH, such as 1:4")
    low, high = int(match[1]), int(match[2])
    if low < 1 or low > high:
        raise InputError("--executors", f"needs 1 <= LOW <= HIGH, got {low}:{high}")
    if high > master.workers:
        problem = f"{high} are more than the {master.workers} workers of {master.url}"
        raise InputError("--executors", problem, "a worker has room for one")
    return low, high


#: A timeout that never expires.
_NEVER = "3650d"
#: How long a task waits for the executor that it is bound to.
_BOUND_TASK_WAIT_S = 60


def executor_settings(master: Master, first: int, tmp: Path) -> dict[str, str]:
    """Return the settings of a session with `first` executors, whose number only Penstock changes.

    Without dynamic allocation Spark would start one executor on every worker, or never more than
    the first ones. So it is enabled, with timeouts that never expire.
    """
    allocation = "spark.dynamicAllocation"
    return {
        f"{allocation}.enabled": "true",
        f"{allocation}.minExecutors": str(first),
        f"{allocation}.initialExecutors": str(first),
        f"{allocation}.schedulerBacklogTimeout": _NEVER,
        f"{allocation}.executorIdleTimeout": _NEVER,
        f"{allocation}.cachedExecutorIdleTimeout": _NEVER,
        f"{allocation}.shuffleTracking.timeout": _NEVER,
        "spark.locality.wait.process": f"{_BOUND_TASK_WAIT_S}s",
        # a released executor gets no more tasks, and exits when it has none
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "false",
        "spark.executor.cores": str(master.cores),
        "spark.executor.memory": f"{master.memory_mb}m",
        "spark.executor.extraJavaOptions": f'{_executor_logging(tmp)} "-Djava.io.tmpdir={tmp}"',
        # executors find the same modules as the driver
        "spark.executorEnv.PYTHONPATH": str(Path.cwd()),
        "spark.task.maxFailures": "3",
    }


def _executor_logging(tmp: Path) -> str:
    """Return the option that limits the log of executors to warnings."""
    path = tmp / "executors.properties"
    path.write_text(
        """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
""",
        encoding="utf-8",
    )
    return f"-Dlog4j2.configurationFile={path.as_uri()}"


_JAVA_HINT = "Spark needs Java 17 or newer: install it, or set JAVA_HOME to its directory"


def find_java() -> str | None:
    """Return the `java` that Spark starts: that of JAVA_HOME if it is set, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None)  # noqa: PTH118


def check_java() -> None:
    """Raise `InputError` if there is no Java where Spark looks for it."""
    if find_java() is not None:
        return
    if home := os.environ.get("JAVA_HOME"):
        raise InputError("JAVA_HOME", f"there is no bin/java in {home!r}", _JAVA_HINT)
    raise InputError("java", "is not installed, or not on the PATH", _JAVA_HINT)
