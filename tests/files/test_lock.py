"""A lock has one holder, which other processes can name, and ends with it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import LockedError
from penstock.files.lock import Holder, Lock, find_holder, locked_directory

#: Holds the lock that it is given until its input ends.
HOLDER = """
import sys
from pathlib import Path
from penstock.files.lock import Lock
with Lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
#: A process id that no Linux gives.
NOBODY = 2**22 + 1


def start_holder(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_holder_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as process:
        with pytest.raises(LockedError, match=str(process.pid)):
            Lock(path).acquire()
        assert find_holder(path) == Holder(process.pid, True)
        process.kill()
    assert find_holder(path) is None
    with Lock(path) as lock:
        assert lock.fileno() >= 0
    assert lock.fileno() == -1


def test_a_lock_that_nobody_took_has_no_holder(tmp_path: Path) -> None:
    assert find_holder(tmp_path / "lock") is None
    lock = Lock(tmp_path / "lock")
    lock.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "holder", "message"),
    [
        (b"", Holder(None, False), "another process"),
        (b"no number", Holder(None, False), "another process"),
        (f"{NOBODY}\n".encode(), Holder(NOBODY, False), "a process that"),
        (b"1\n", None, "process 1"),
    ],
)
def test_a_child_holds_the_lock_of_a_process_that_ended(
    tmp_path: Path, content: bytes, holder: Holder | None, message: str
) -> None:
    """The lock file names who took it; the descriptor may be with a child by then."""
    path = tmp_path / "lock"
    with Lock(path) as lock:
        os.ftruncate(lock.fileno(), 0)
        os.pwrite(lock.fileno(), content, 0)
        if holder is not None:
            assert find_holder(path) == holder
        with pytest.raises(LockedError, match=message):
            Lock(path).acquire()


def test_a_directory_is_locked_until_the_block_ends(tmp_path: Path) -> None:
    exclusive = fcntl.LOCK_EX | fcntl.LOCK_NB
    with locked_directory(tmp_path, fcntl.LOCK_SH):
        with locked_directory(tmp_path, fcntl.LOCK_SH | fcntl.LOCK_NB):
            pass
        with pytest.raises(BlockingIOError), locked_directory(tmp_path, exclusive):
            pass
    with locked_directory(tmp_path, exclusive) as descriptor:
        assert descriptor >= 0
