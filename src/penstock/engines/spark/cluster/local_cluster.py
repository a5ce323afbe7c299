"""Settings of a session that has executors."""

from pathlib import Path

from penstock.engines.spark.cluster.masters import Master

#: What Spark would do by itself, it does not within this time.
_NEVER = "3650d"
#: Time that tasks wait for the one executor that they are meant for.
_TIED_S = 60


def settings(master: Master, first: int, tmp: Path) -> dict[str, str]:
    """Settings of a session that begins with so many executors, none of which Spark adds or ends.

    Without its own allocation Spark would start one executor on every worker, or never more than
    the first ones; so it is on, and waits for ever.
    """
    own = "spark.dynamicAllocation"
    return {
        f"{own}.enabled": "true",
        f"{own}.minExecutors": str(first),
        f"{own}.initialExecutors": str(first),
        f"{own}.schedulerBacklogTimeout": _NEVER,
        f"{own}.executorIdleTimeout": _NEVER,
        f"{own}.cachedExecutorIdleTimeout": _NEVER,
        f"{own}.shuffleTracking.timeout": _NEVER,
        "spark.locality.wait.process": f"{_TIED_S}s",
        # an executor that is sent home gets no more tasks, and leaves when it has none
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "false",
        "spark.executor.cores": str(master.cores),
        "spark.executor.memory": f"{master.memory_mb}m",
        "spark.executor.extraJavaOptions": f'{_logging(tmp)} "-Djava.io.tmpdir={tmp}"',
        # as in a process of the driver, modules beside the one that was started are found
        "spark.executorEnv.PYTHONPATH": str(Path.cwd()),
        "spark.task.maxFailures": "3",
    }


def _logging(tmp: Path) -> str:
    """Return the option that lets executors tell no more than the driver does."""
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
