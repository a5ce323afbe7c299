"""The layout of a run directory, for every process that works in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.files.atomic import replace

#: Patterns of the files that a run must not lose.
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

    @property
    def topics(self) -> Path:
        """The logs of all topics, and the file that says where in Kafka their rows are."""
        return self.run / "topics"

    def topic(self, name: str) -> Path:
        """The log of a topic."""
        return self.topics / name

    def checkpoint(self, operator: str) -> Path:
        """Spark's checkpoint of an operator's query."""
        return self.run / "checkpoints" / operator

    def order(self, operator: str) -> Path:
        """The command to an operator: replicas, hold."""
        return self.run / "orders" / f"{operator}.json"

    def config(self, operator: str) -> Path:
        """The config of an operator: inputs, outputs and rules."""
        return self.run / "code" / f"{operator}.json"

    def code(self, operator: str) -> Path:
        """The bundle of an operator, which other processes load."""
        return self.run / "code" / f"{operator}.pickle"

    def plan(self, operator: str) -> Path:
        """The plan of the present batch."""
        return self.run / "plans" / f"{operator}.pickle"

    def batches(self, operator: str) -> Path:
        """The batch records of an operator."""
        return self.run / "batches" / operator

    def state(self, operator: str) -> Path:
        """The keyed state of an operator."""
        return self.run / "state" / operator

    def notes(self, operator: str) -> Path:
        """What tasks have reported that wrote to Kafka, until their batch has a record."""
        return self.run / "notes" / operator

    def native(self, operator: str) -> Path:
        """The rescale log of an operator with Spark's own state."""
        return self.run / "native" / f"{operator}.json"

    def backpressure_file(self, operator: str) -> Path:
        """Seconds during which back-pressure kept the operator from reading."""
        return self.run / "plans" / f"{operator}.held"

    def error(self, operator: str) -> Path:
        """The last failure of an operator."""
        return self.run / "errors" / f"{operator}.json"

    def marks(self, operator: str) -> Path:
        """The marks of calls: the rows that an operator's tasks process."""
        return self.run / "marks" / operator

    @property
    def hosts(self) -> Path:
        """The host of each slice, if the pipeline has hosts."""
        return self.run / "hosts.json"

    def host_core(self, host: str) -> Path:
        """The lock that the slices of an emulated host take turns with."""
        return self.run / "hosts" / f"{host}.lock"

    @property
    def log(self) -> Path:
        """The log of Spark."""
        return self.run / "spark.log"


def has_data(run: Path) -> bool:
    """Whether a run directory holds rows, offsets, checkpoints or state."""
    return any(True for pattern in _DATA for _ in run.glob(pattern))


def write_json(path: Path, data: Any) -> None:
    """Replace a small file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(data, separators=(",", ":")).encode())


def read_json(path: Path, hint: str = "restore it from a backup") -> Any:
    """Read a small file that holds a JSON object; None if there is no file.

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
