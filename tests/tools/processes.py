"""The processes of one run, found by a mark in their environment, and what they use.

Every process inherits its parent's environment, so the mark of a driver is that of its JVM and
of all Python workers, also of those whose parents are gone.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "PENSTOCK_FAULTS"
_PROC = Path("/proc")
#: State of a socket in /proc/net/tcp that waits for connections.
_LISTENS = "0A"
#: 127.0.0.1 there, by itself and inside IPv6.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a run."""

    pid: int
    parent: int
    #: R, S, D, ...; see proc(5).
    state: str
    #: driver, jvm, daemon (forks workers), worker, committer (a worker that publishes batches),
    #: source (one a query), other.
    kind: str
    words: tuple[str, ...]

    @property
    def pss_bytes(self) -> int:
        """Resident memory, what is shared divided among those who share it."""
        return self._memory("Pss:")

    @property
    def anonymous_bytes(self) -> int:
        """Resident memory that no file backs, shared pages divided.

        It grows by a leak only. The share of a library grows whenever another process that
        maps the library ends.
        """
        return self._memory("Pss_Anon:")

    def _memory(self, field: str) -> int:
        for line in _read(self.pid, "smaps_rollup").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        return 0

    @property
    def descriptors(self) -> int:
        """Open files, sockets and pipes."""
        try:
            return len(list((_PROC / str(self.pid) / "fd").iterdir()))
        except OSError:
            return 0


def is_at_work(pid: int) -> bool:
    """Whether a process computes or waits for the disk just now."""
    return _stat(pid)[1] in ("R", "D")


def marked(mark: str) -> list[Process]:
    """Return every living process whose mark begins like this."""
    found = {pid: _stat(pid) for pid in _pids() if f"\0{MARK}={mark}" in _environment(pid)}
    words = {pid: tuple(_read(pid, "cmdline").split("\0")[:-1]) for pid in found}
    javas = {pid for pid in found if _is_jvm(words[pid])}
    # a child of a JVM that has not become another program yet still looks like it
    jvms = {pid for pid in javas if found[pid][0] not in javas}
    return [
        Process(
            pid=pid,
            parent=parent,
            state=state,
            kind="jvm" if pid in jvms else _kind(words[pid], parent in jvms),
            words=words[pid],
        )
        for pid, (parent, state) in found.items()
        if state not in ("", "Z")
    ]


def descendants(pid: int) -> list[int]:
    """Return a process and all that it has started, however far down."""
    parents = {child: _stat(child)[0] for child in _pids()}
    found = [pid]
    for parent in found:
        found += [child for child, its in parents.items() if its == parent]
    return found


def command_lines(pids: list[int]) -> str:
    """What everybody on this machine may read of these processes."""
    return "\n".join(_read(pid, "cmdline") for pid in pids)


def listened_on(pids: list[int]) -> set[str]:
    """Return the addresses, as the kernel writes them, that these processes listen on."""
    sockets = {name for pid in pids for name in _open_files(pid) if name.startswith("socket:")}
    return {
        address.partition(":")[0]
        for pid in pids[:1]
        for table in ("net/tcp", "net/tcp6")
        for address, state, inode in _connections(pid, table)
        if state == _LISTENS and f"socket:[{inode}]" in sockets
    }


def _connections(pid: int, table: str) -> Iterator[tuple[str, str, str]]:
    for line in _read(pid, table).splitlines()[1:]:
        fields = line.split()
        yield fields[1], fields[3], fields[9]


def _open_files(pid: int) -> list[str]:
    names = []
    try:
        for path in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                names.append(str(path.readlink()))
    except OSError:  # it is gone
        pass
    return names


def _is_jvm(words: tuple[str, ...]) -> bool:
    # before it, a shell and a small JVM have its name among their arguments
    is_java = bool(words) and Path(words[0]).name == "java"
    named = "org.apache.spark.deploy.SparkSubmit" in words
    return is_java and named and "org.apache.spark.launcher.Main" not in words


def _kind(words: tuple[str, ...], is_child_of_jvm: bool) -> str:
    line = " ".join(words)
    if "tests.tools.drive" in line or "-m penstock run" in line:
        return "driver"
    if "penstock.engines.spark.cluster.daemon" in line or "pyspark.daemon" in line:
        is_committer = "python_streaming_sink_runner" in line
        return "daemon" if is_child_of_jvm else "committer" if is_committer else "worker"
    return "source" if "python_streaming_source_runner" in line else "other"


def _pids() -> Iterator[int]:
    return (int(path.name) for path in _PROC.iterdir() if path.name.isdecimal())


def _stat(pid: int) -> tuple[int, str]:
    # the name of the program, in parentheses, may hold anything
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return (int(fields[1]), fields[0]) if fields else (0, "")


def _environment(pid: int) -> str:
    return "\0" + _read(pid, "environ")


def _read(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text(encoding="utf-8", errors="replace")
    except OSError:  # it is gone, or was never ours
        return ""
