"""Where Spark runs: master URLs, settings of executors, and the check for Java."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import penstock
from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError

#: The least memory with which Spark starts an executor, in megabytes.
MIN_MB = 512
_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_LOCAL = re.compile(r"local\[\s*(\d+)\s*\]")
#: How addresses of clusters that exist begin.
_CLUSTERS = ("spark://", "yarn", "k8s://")
_LOOPBACK_MASTER = re.compile(r"spark://(127\.0\.0\.1|localhost):")
_CORES, _MEMORY = "spark.executor.cores", "spark.executor.memory"
#: Settings of Spark on which the engine relies, by their beginning.
_OURS = (
    *("spark.master", "spark.app.name", "spark.submit.deployMode", "spark.dynamicAllocation."),
    *("spark.python.daemon.module", "spark.python.worker.reuse", "spark.sql.streaming."),
    *("spark.decommission.", "spark.task.maxFailures", "spark.executor.instances"),
)
_SECRET = re.compile("secret|password|token|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """Where replicas run: one process, or workers with one executor each."""

    #: Workers that are started with the session; None: one process, or a cluster that exists.
    workers: int | None = None
    #: Concurrent tasks, per executor or of the process.
    cores: int
    memory_mb: int = 0
    #: The address of a cluster that exists; empty: Spark runs on this machine alone.
    cluster: str = ""
    #: Settings of Spark that the user chose.
    settings: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def url(self) -> str:
        """The master URL for Spark. A task is tried three times."""
        if self.cluster:
            return self.cluster
        if self.workers is None:
            return f"local[{self.cores},3]"
        return f"local-cluster[{self.workers},{self.cores},{self.memory_mb}]"

    @property
    def has_executors(self) -> bool:
        """Whether tasks run in executors, whose number can change."""
        return bool(self.cluster) or self.workers is not None

    @property
    def is_on_this_machine(self) -> bool:
        """Whether all its processes listen on the loopback address."""
        return not self.cluster or bool(_LOOPBACK_MASTER.match(self.cluster))


def parse_master(text: str, settings: Mapping[str, str] = FrozenDict()) -> Master:
    """Parse the value of `--master`, with the settings of `--conf`.

    >>> parse_master("local-cluster[4,1,1024]").workers
    4
    >>> parse_master("spark://one:7077", {"spark.executor.cores": "2"}).cores
    2
    """
    check_settings(settings)
    if text.strip().startswith(_CLUSTERS):
        return Master(
            cluster=text.strip(),
            cores=_read_cores(settings.get(_CORES, "1")),
            memory_mb=_read_mb(settings.get(_MEMORY, "1g")),
            settings=FrozenDict(settings),
        )
    if settings:
        hint = "give --master spark://HOST:PORT, too; local masters have their own settings"
        raise InputError("--conf", "sets how Spark runs on a cluster that exists", hint)
    if match := _LOCAL.fullmatch(text.strip()):
        master = Master(cores=int(match[1]))
    elif match := _CLUSTER.fullmatch(text.strip()):
        workers, cores, memory_mb = map(int, match.groups())
        master = Master(workers=workers, cores=cores, memory_mb=memory_mb)
    else:
        hint = "spark://HOST:PORT, yarn, k8s://..., local[8], or local-cluster[4,1,1024]"
        raise InputError("--master", f"cannot be read: {text!r}", hint)
    if not master.cores or master.workers == 0:
        raise InputError("--master", f"needs at least one worker and one core, got {text!r}")
    if master.workers is not None and master.memory_mb < MIN_MB:
        problem = f"{master.memory_mb} MB are too few for an executor"
        raise InputError("--master", problem, f"at least {MIN_MB}")
    return master


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings that Penstock makes itself, and secrets, which the run directory would hold.

    >>> check_settings({"spark.executor.cores": "2"})
    """
    for key in settings:
        if not key.startswith("spark."):
            hint = "such as spark.executor.memory=2g"
            raise InputError("--conf", f"{key!r} is no setting of Spark", hint)
        if key.startswith(_OURS):
            raise InputError("--conf", f"{key} is set by Penstock", "leave it out")
        if _SECRET.search(key):
            hint = "put it into spark-defaults.conf in SPARK_CONF_DIR, which Spark reads itself"
            raise InputError("--conf", f"{key} would be stored in the run directory", hint)


def _read_cores(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,4}", text):
        raise InputError("--conf", f"{_CORES} must be a whole number from 1, got {text!r}")
    return int(text)


def _read_mb(text: str) -> int:
    """Read a size as Spark writes it, to megabytes.

    >>> _read_mb("2g"), _read_mb("1500m")
    (2048, 1500)
    """
    match = re.fullmatch("([1-9][0-9]{0,8})([mg])b?", text.lower())
    if match is None:
        raise InputError("--conf", f"{_MEMORY} must be a size such as 2g or 1500m, got {text!r}")
    size_mb = int(match[1]) * (1024 if match[2] == "g" else 1)
    if size_mb < MIN_MB:
        problem = f"{_MEMORY}={text} is too little for an executor"
        raise InputError("--conf", problem, f"at least {MIN_MB}m")
    return size_mb


def parse_executors(text: str | None, master: Master | None) -> tuple[int, int] | None:
    """Parse the value of `--executors` to (min, max); None in local mode.

    >>> parse_executors("1:3", parse_master("local-cluster[4,1,1024]"))
    (1, 3)
    """
    if master is None or not master.has_executors:
        if text is None:
            return None
        problem = "there are no executors in local mode: all replicas share one process"
        raise InputError("--executors", problem, "add --master 'local-cluster[4,1,1024]'")
    if text is None and master.workers is None:
        problem = f"is needed with --master {master.cluster}"
        raise InputError("--executors", problem, "LOW:HIGH, such as 1:4")
    match = re.fullmatch(r"\s*(\d{1,6})\s*:\s*(\d{1,6})\s*", text or f"1:{master.workers}")
    if match is None:
        raise InputError("--executors", f"cannot be read: {text!r}", "LOW:HIGH, such as 1:4")
    low, high = int(match[1]), int(match[2])
    if low < 1 or low > high:
        raise InputError("--executors", f"needs 1 <= LOW <= HIGH, got {low}:{high}")
    if master.workers is not None and high > master.workers:
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
        **(_settings_of_cluster(master) if master.cluster else {}),
    }


def _settings_of_cluster(master: Master) -> dict[str, str]:
    """Return what executors need that do not inherit the environment of this process."""
    package = Path(penstock.__file__).parents[1]
    settings = {"spark.executorEnv.PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(package)])}
    if master.cluster.startswith("spark:"):
        # its daemons would have to know the secret, too: let users set that, with the secret
        settings["spark.authenticate"] = "false"
    return {**settings, **master.settings}


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
