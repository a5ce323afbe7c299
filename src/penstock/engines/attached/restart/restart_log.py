"""The log of restarts in a run directory: what was requested is written before it is done."""

import json
import os
import time
from pathlib import Path

from penstock.files.atomic import sync_directory

#: The name of the file in a run directory.
RESTARTS = "restarts.jsonl"
#: The first step of a change, and the last ones. After any other line it was interrupted.
REQUESTED, CHANGED, RESTORED, FAILED = "requested", "changed", "restored", "failed"
#: The last step if the user has stopped the query meanwhile.
STOPPED = "stopped"


class RestartLog:
    """Appends a line for each step of each change, and syncs it to disk."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESTARTS

    def write(self, query: str, step: str, before: int, partitions: int) -> None:
        """Write that a step of a change from one number of partitions to another begins or ends."""
        line = {
            "time": round(time.time(), 3),
            "query": query,
            "step": step,
            "before": before,
            "partitions": partitions,
        }
        is_new = not self._path.exists()
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_directory(self._path.parent)
