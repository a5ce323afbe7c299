"""Waits until a file appears in one of some directories, by inotify where the system has it."""

import ctypes
import os
import select
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

#: Flags of inotify(7): non-blocking and closed on exec; created or moved into the directory.
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_APPEARED = 0x100 | 0x80
#: Without inotify a wait ends after this long, so that its caller looks again.
LOOK_S = 0.1


class DirectoryWatch:
    """Watches directories from its creation on: a file that appears between two waits counts."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._descriptor = _open_watch([*directories])

    def wait(self, seconds: float) -> bool:
        """Wait until a file appears, at most so long; return whether one may have appeared."""
        if self._descriptor is None:
            time.sleep(max(0.0, min(seconds, LOOK_S)))
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(max(0.0, seconds) * 1000):
            return False
        try:
            while os.read(self._descriptor, 1 << 16):
                pass
        except BlockingIOError:  # all events are read
            pass
        return True

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open_watch(directories: list[Path]) -> int | None:
    """Return the descriptor of a watch; None if the system cannot watch all directories."""
    library = _load_library()
    if library is None:
        return None
    descriptor: int = library.inotify_init1(_FLAGS)
    if descriptor < 0:  # the limit of watches is reached
        return None
    for directory in directories:
        if library.inotify_add_watch(descriptor, os.fsencode(directory), _APPEARED) < 0:
            os.close(descriptor)
            return None
    return descriptor


@lru_cache(maxsize=1)
def _load_library() -> ctypes.CDLL | None:
    """Return the C library if it has inotify."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "inotify_init1") else None
