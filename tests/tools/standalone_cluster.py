"""A standalone Spark cluster on this machine: a master and workers from PySpark's own package."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from pyspark.find_spark_home import _find_spark_home
from tests.tools.kafka_broker import free_port

_CLASS = "org.apache.spark.deploy"
_HOST = "127.0.0.1"
MAX_START_S = 120.0


class StandaloneCluster:
    """One master, and workers with a number of cores each; workers can be killed and added."""

    def __init__(self, directory: Path, workers: int, cores: int = 1, memory: str = "1g") -> None:
        self._directory, self._port = directory, free_port()
        self._first, self._cores, self._memory = workers, cores, memory
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """The address for `--master`."""
        return f"spark://{_HOST}:{self._port}"

    def __enter__(self) -> "StandaloneCluster":
        options = ["--host", _HOST, "--port", str(self._port), "--webui-port", "0"]
        try:
            self._master = self._start("master", f"{_CLASS}.master.Master", *options)
            self._until(lambda: "New state: ALIVE" in self._log("master"), "the master")
            for _ in range(self._first):
                self.add_worker()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def add_worker(self) -> None:
        """Start one more worker and wait until the master knows it."""
        name = f"worker-{len(self._workers)}"
        options = ["--host", _HOST, "--cores", str(self._cores), "--memory", self._memory]
        options += ["--webui-port", "0", "--work-dir", str(self._directory / name), self.url]
        self._workers.append(self._start(name, f"{_CLASS}.worker.Worker", *options))
        self._until(lambda: "Successfully registered with master" in self._log(name), name)

    def kill_busy_worker(self) -> None:
        """Kill a worker that has executors, and these, as when a machine is lost."""
        number = next(n for n in range(len(self._workers)) if self._launched(n))
        os.killpg(self._workers[number].pid, signal.SIGKILL)
        self._workers[number].wait()

    def executors(self) -> int:
        """How many executors were started on all workers."""
        return sum(map(self._launched, range(len(self._workers))))

    def _launched(self, number: int) -> int:
        return self._log(f"worker-{number}").count("Asked to launch executor")

    def _start(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        with (self._directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [f"{_find_spark_home()}/bin/spark-class", *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "SPARK_LOCAL_IP": _HOST, "SPARK_NO_DAEMONIZE": "1"},
            )

    def _log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _until(self, is_so: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + MAX_START_S
        while not is_so():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start, see {self._directory}")
            time.sleep(0.2)

    def _end(self) -> None:
        for process in (*self._workers, *filter(None, [self._master])):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
