"""What a Python worker does when Spark sends it home: it closes the resources it opened."""

import os
import signal
from types import FrameType

from penstock.pipelines.resources import close_all

_prepared = False


def close_at_end() -> None:
    """Close resources when the daemon says that it is over; asked once a process."""
    global _prepared
    if not _prepared:
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, _leave)
        _prepared = True


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (what Python passes)
    close_all()
    os._exit(0)
