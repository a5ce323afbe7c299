"""The port of grids to what runs them: the simulator, or Spark."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar

#: A result as grids keep it: that of `RunResult.to_json`, and perhaps more, such as `course`.
Result = dict[str, Any]


class AnySpec(Protocol):
    """What is asked of one run, whatever runs it."""

    @property
    def policy(self) -> str:
        """The policy by its name, or its file."""

    @property
    def seed(self) -> int:
        """The seed of all draws."""

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""


S = TypeVar("S", bound=AnySpec)


class RunBackend(Protocol[S]):
    """Runs in a simulator, or on Spark."""

    @property
    def name(self) -> str:
        """What a grid says with `on = "..."`."""

    @property
    def fields(self) -> tuple[str, ...]:
        """What may be written down of a run; `query` is always among it."""

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names of fields."""

    @property
    def is_sequential(self) -> bool:
        """Whether a run needs the machine for itself; then a failure does not end the others."""

    def make(self, fields: Mapping[str, Any], seed: int) -> S:
        """Make the spec of a run."""

    def names(self, spec: S) -> Mapping[str, str]:
        """How the query, the workload and the policy of a run are called."""

    def check(self, spec: S) -> None:
        """Refuse a run that cannot be, with an `InputError`."""

    def inputs(self, spec: S) -> str:
        """Digest of what the names in a spec stand for: files change while their names stay."""

    def run(self, spec: S, place: Path | None, /) -> Result:
        """Carry out a run; `place` is a directory for what it leaves besides its result."""


def fingerprint(*parts: object) -> str:
    """Return a short digest of values that decide an outcome."""
    return sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:20]
