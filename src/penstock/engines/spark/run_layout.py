"""Where things lie in a run directory, for every process that works in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.files.atomic import replace

#: What a run must not lose, by the names of its files.
_DATA = (
    "topics/*/commits/[0-9]*",
    "checkpoints/*/offsets/[0-9]*",
    "checkpoints/*/commits/[0-9]*",
    "batches/*/[0-9]*",
    "state/*/segments/*",
)


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The run directory, seen by the Spark engine."""

    run: Path

    def topic(self, name: str) -> Path:
        """The log of a topic."""
        return self.run / "topics" / name

    def checkpoint(self, operator: str) -> Path:
        """Spark's own checkpoint of an operator's query."""
        return self.run / "checkpoints" / operator

    def order(self, operator: str) -> Path:
        """What the loop asks of an operator: replicas, hold."""
        return self.run / "orders" / f"{operator}.json"

    def config(self, operator: str) -> Path:
        """What an operator reads, writes and keeps to."""
        return self.run / "code" / f"{operator}.json"

    def code(self, operator: str) -> Path:
        """The operator itself, as other processes load it."""
        return self.run / "code" / f"{operator}.pickle"

    def plan(self, operator: str) -> Path:
        """How the rows of the present batch are dealt to tasks."""
        return self.run / "plans" / f"{operator}.pickle"

    def batches(self, operator: str) -> Path:
        """One record a batch."""
        return self.run / "batches" / operator

    def state(self, operator: str) -> Path:
        """What an operator remembers."""
        return self.run / "state" / operator

    def native(self, operator: str) -> Path:
        """What is known about the repartitions of an operator with Spark's own state."""
        return self.run / "native" / f"{operator}.json"

    def backpressure_file(self, operator: str) -> Path:
        """Seconds during which back-pressure kept the operator from reading."""
        return self.run / "plans" / f"{operator}.held"

    def error(self, operator: str) -> Path:
        """Why an operator stopped."""
        return self.run / "errors" / f"{operator}.json"

    def marks(self, operator: str) -> Path:
        """Which rows the operator's tasks work on."""
        return self.run / "marks" / operator

    @property
    def log(self) -> Path:
        """What Spark has to say."""
        return self.run / "spark.log"


def has_data(run: Path) -> bool:
    """Whether a run directory holds rows, offsets, checkpoints or state."""
    return any(True for pattern in _DATA for _ in run.glob(pattern))


def write_json(path: Path, data: Any) -> None:
    """Replace a small file at once: readers see the old or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(data, separators=(",", ":")).encode())


def read_json(path: Path, hint: str = "restore it from a backup") -> Any:
    """Read a small file that holds a JSON object; None if it is not there.

    `InputError` with the hint if it is damaged.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise InputError(str(path), "is empty or damaged: it must hold a JSON object", hint)
    return data
