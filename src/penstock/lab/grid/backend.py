"""The port between grids and the backends that execute runs: the simulator and Spark."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar

#: A result as grids store it: `RunResult.to_json`, possibly with more keys, such as `course`.
Result = dict[str, Any]


class AnySpec(Protocol):
    """The specification of one run on any backend."""

    @property
    def policy(self) -> str:
        """The name of the policy, or its file."""

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries."""


S = TypeVar("S", bound=AnySpec)


class RunBackend(Protocol[S]):
    """Executes runs: in the simulator, or on Spark."""

    @property
    def name(self) -> str:
        """The name in `on = "..."` of a grid."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a run; `query` is always one of them."""

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names of fields."""

    @property
    def result_keys(self) -> tuple[str, ...]:
        """Keys of every result; a stored one that lacks a key is damaged."""

    @property
    def is_sequential(self) -> bool:
        """Whether runs execute one at a time; then a failed run does not end the others."""

    def make(self, fields: Mapping[str, Any], seed: int) -> S:
        """Make the spec of a run."""

    def names(self, spec: S) -> Mapping[str, str]:
        """Return the names of the query, the workload and the policy of a run."""

    def check(self, spec: S) -> None:
        """Raise `InputError` for a run that cannot be executed."""

    def inputs(self, spec: S) -> str:
        """Return a digest of everything that a spec names; files change while their names stay."""

    def run(self, spec: S, place: Path | None, /) -> Result:
        """Execute a run; `place` is a directory for its files other than the result."""


def fingerprint(*parts: object) -> str:
    """Return a short digest of values that determine a result."""
    return sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:20]
