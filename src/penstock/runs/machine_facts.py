"""What a machine has for Penstock: Java, Python, packages, memory, disk, network. Gathered here."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.engines.spark.cluster.masters import find_java
from penstock.files.lock import Lock
from penstock.files.text import explain_os_error
from penstock.runs.package_versions import PackageVersion, read_package_versions

_LOOPBACK = "127.0.0.1"
_JAVA_TIMEOUT_S = 20
_JAVA_VERSION = re.compile(r'version "([^"]+)"')
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What was found; None: unknown. An error is empty if there was none."""

    python_version: tuple[int, int, int]
    python_path: str
    #: The environment variable JAVA_HOME; "" if it is not set.
    java_home: str
    #: None: there is no Java where Spark looks for it.
    java_path: str | None
    #: Such as "17.0.15"; None if it cannot be run or read.
    java_version: str | None
    packages: tuple[PackageVersion, ...]
    memory_bytes: int | None
    available_memory_bytes: int | None
    cores: int
    directory: str
    free_disk_bytes: int | None
    write_error: str = ""
    port_error: str = ""
    host_name: str = ""
    host_error: str = ""
    #: How long the host name took to resolve.
    host_lookup_s: float = 0.0


def gather_facts(directory: Path) -> MachineFacts:
    """Read the facts of this machine; run directories would be in `directory`."""
    java = find_java()
    total, available = _read_memory()
    host_name, host_error, host_lookup_s = _resolve_host()
    return MachineFacts(
        python_version=sys.version_info[:3],
        python_path=sys.executable,
        java_home=os.environ.get("JAVA_HOME", ""),
        java_path=java,
        java_version=_read_java_version(java) if java else None,
        packages=tuple(read_package_versions()),
        memory_bytes=total,
        available_memory_bytes=available,
        cores=_count_cores(),
        directory=str(directory.resolve()),
        free_disk_bytes=_read_free_disk(directory),
        write_error=_try_write(directory),
        port_error=_try_port(),
        host_name=host_name,
        host_error=host_error,
        host_lookup_s=host_lookup_s,
    )


def _read_java_version(java: str) -> str | None:
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _JAVA_VERSION.search(done.stderr + done.stdout)
    return match[1] if match else None


def _count_cores() -> int:
    """Count the cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_memory() -> tuple[int | None, int | None]:
    """Return the total and the available memory, at most the limit of the container."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return None, None
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
    total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
    try:
        limit = int(_CGROUP_LIMIT.read_text())
    except (OSError, ValueError):  # no container, or "max"
        return total, available
    return min(total or limit, limit), min(available or limit, limit)


def _read_free_disk(directory: Path) -> int | None:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


def _try_write(directory: Path) -> str:
    """Do what a run does: write a file, link it to another name, and lock it."""
    step = "create a file"
    try:
        with TemporaryDirectory(prefix=".penstock-doctor-", dir=directory) as name:
            file = Path(name) / "file"
            file.write_bytes(b"penstock")
            step = "make a hard link"
            os.link(file, file.with_name("link"))
            step = "lock a file"
            with Lock(file.with_name("lock")):
                pass
    except OSError as error:
        return f"cannot {step}: {explain_os_error(error)}"
    return ""


def _try_port() -> str:
    try:
        with socket.create_server((_LOOPBACK, 0)):
            return ""
    except OSError as error:
        return explain_os_error(error)


def _resolve_host() -> tuple[str, str, float]:
    name = socket.gethostname()
    began_s = time.monotonic()
    try:
        socket.getaddrinfo(name, None)
        error = ""
    except OSError as failure:
        error = explain_os_error(failure)
    return name, error, time.monotonic() - began_s
