"""File locks: one writer at a time; a killed process leaves no lock."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from penstock.errors import LockedError


class Lock:
    """A lock on a file, held while any process has the descriptor open.

    The kernel releases it when its holder ends. A child that inherits the descriptor
    (`pass_fds=[lock.fileno()]`) keeps it after its parent has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the lock, or raise `LockedError` with the process that holds it."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(os.pread(descriptor, 32, 0))
            os.close(descriptor)
            raise LockedError(self.path.parent.name, holder) from None
        with suppress(OSError):  # a full disk: only the process id is missing in messages
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Close the descriptor; a child that inherited it keeps the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """The descriptor, for a child process to inherit."""
        return self._descriptor

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


@contextmanager
def locked_directory(directory: Path, mode: int) -> Iterator[int]:
    """Lock a directory, shared or exclusive, and yield its descriptor.

    `BlockingIOError` if the mode has `LOCK_NB` and it is held already.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, mode)
        yield descriptor
    finally:
        # unlock explicitly, because a forked process may have the descriptor, too
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _holder(content: bytes) -> str:
    number = content.strip()
    if not number.isdigit():
        return "another process"
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return f"a process that {int(number)} has started"
    except PermissionError:
        pass
    return f"process {int(number)}"


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock."""

    #: The process that took it; None if the file does not say.
    pid: int | None
    #: Whether that process still has the lock file open; otherwise a child of it holds the lock.
    is_alive: bool


def find_holder(path: Path) -> Holder | None:
    """Return the holder of a lock, None if it is free; does not change the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # a process that acquires it at this moment retries
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        number = os.pread(descriptor, 32, 0).strip()
        pid = int(number) if number.isdigit() else None
        return Holder(pid, pid is not None and _has_open(pid, os.fstat(descriptor)))
    finally:
        os.close(descriptor)
    return None


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Whether a process has a file open; without /proc, whether it is alive."""
    descriptors = Path(f"/proc/{pid}/fd")
    if not Path("/proc/self/fd").is_dir():
        return not _holder(str(pid).encode()).startswith("a process that")
    try:
        return any(_is_same(path, file) for path in descriptors.iterdir())
    except PermissionError:  # of another user
        return True
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_same(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), file)
    except OSError:  # closed meanwhile
        return False
