"""Ties a child process to its parent: the kernel kills the child when the parent ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

#: See prctl(2): the signal that a process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


def prepare_child() -> Callable[[], None]:
    """Return the function that a child of this process runs first, before exec if there is one.

    The child ignores Ctrl-C, and on Linux it ends with the thread that started it. Libraries are
    loaded here, because a child of a process with threads must not load any.
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the parent has ended before prctl
                os._exit(1)

    return prepare
