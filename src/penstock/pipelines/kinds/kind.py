"""The port of operator kinds, and their registry.

A built-in kind is the module of its name in this folder. `register_kind` adds another one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.topic_declaration import DeclaredTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipelines.operator import Operator

Row = dict[str, Any]
Schemas = Mapping[str, pa.Schema]
Topics = Mapping[str, DeclaredTopic]

BUILT_IN = ("frame", "batch", "sliced", "native", "ingest", "egress")
#: Options of every operator whose replicas the loop decides on.
REPLICA_OPTIONS = ("min_replicas", "max_replicas", "replicas")
#: Options of an operator that may drop rows of its queue.
QUEUE_OPTIONS = ("grouping", "timeout_s", "queue_size", "dropped_to", "queue_limit")


@dataclass(frozen=True, kw_only=True)
class OperatorKind(ABC):
    """The properties and checks that all operators of one kind share.

    A kind that can be tried on rows overrides `check_try_out` and `try_rows`.
    """

    name: str
    #: The names of `Options` that it knows.
    options: tuple[str, ...]
    #: Whether the loop decides on its replicas; Spark decides on the others.
    scales: bool = True
    reads_topics: bool = True
    writes_topics: bool = True
    #: Whether its function may return rows for several topics.
    writes_several: bool = False
    #: Whether it may keep rows in its state and return fewer than it takes.
    reduces_rows: bool = False
    #: Whether it has a watermark: rows may be late, and inputs carry event time.
    uses_event_time: bool = False
    #: Whether a change of its replicas stops it for a moment.
    pauses: bool = False
    #: Whether a chain may begin with it, and whether it may follow in a chain.
    leads_chains: bool = False
    follows_in_chains: bool = False
    #: Whether rows are dealt by key in front of it.
    deals_by_key: bool = False

    @abstractmethod
    def arguments(self, operator: "Operator") -> tuple[str, ...]:
        """Return the names of the arguments that its function is called with."""

    def check(self, operator: "Operator") -> None:
        """Raise `InputError` if the operator alone does not meet the needs of this kind."""
        if self.reads_topics and not operator.reads:
            raise InputError("reads", "must name a topic")
        self._check_outputs(operator)
        for option in fields(operator.options):
            is_set = getattr(operator.options, option.name) != option.default
            if is_set and option.name not in self.options:
                hint = f"it knows {', '.join(self.options)}"
                raise InputError(option.name, f"is no option of kind {self.name!r}", hint)

    def _check_outputs(self, operator: "Operator") -> None:
        outputs = operator.outputs
        if self.writes_topics and not outputs:
            raise InputError("writes", "must name a topic")
        if len(set(outputs)) < len(outputs):
            raise InputError("writes", f"names a topic twice: {', '.join(outputs)}")
        if len(outputs) > 1 and not self.writes_several:
            problem = f"an operator of kind {self.name!r} writes one topic, got {len(outputs)}"
            raise InputError("writes", problem, "batches and sliced operators write several")

    def check_schemas(  # noqa: B027  (optional)
        self, operator: "Operator", inputs: Schemas, topics: Topics
    ) -> None:
        """Raise `InputError` if columns do not fit; `inputs` are the known ones that it reads."""

    def check_try_out(self, operator: "Operator") -> None:
        """Raise `InputError` if an operator of this kind cannot be tried on rows."""
        raise self._no_try_out(operator)

    def try_rows(
        self,
        operator: "Operator",
        batch: pa.RecordBatch,  # noqa: ARG002
        spark: "SparkSession | None",  # noqa: ARG002
    ) -> list[Row]:
        """Return the output of the operator for rows that carry `_event`."""
        raise self._no_try_out(operator)

    def try_outputs(
        self, operator: "Operator", batch: pa.RecordBatch, spark: "SparkSession | None"
    ) -> dict[str, list[Row]]:
        """Return the output of the operator by topic."""
        return {str(operator.writes): self.try_rows(operator, batch, spark)}

    def _no_try_out(self, operator: "Operator") -> InputError:
        problem = f"is an {self.name} operator: only batch and frame operators can be tried"
        return InputError(operator.name, problem, where=operator.where)

    def late_to(self, operator: "Operator") -> str | None:  # noqa: ARG002
        """Return the topic that gets rows which come after the watermark."""
        return None

    def add_topics(  # noqa: B027  (optional)
        self, operator: "Operator", topics: dict[str, DeclaredTopic]
    ) -> None:
        """Add to the topics of a pipeline what follows from an operator of this kind."""

    def describe_state(self, operator: "Operator") -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return what its state depends on, as JSON; None without keyed state."""
        return None


_KINDS: dict[str, OperatorKind] = {}


def register_kind(kind: OperatorKind) -> None:
    """Add a kind; `InputError` if there is another one of its name."""
    if kind.name in BUILT_IN or _KINDS.get(kind.name, kind) != kind:
        raise InputError("kind", f"there is a kind {kind.name!r} already")
    _KINDS[kind.name] = kind


def find_kind(name: str) -> OperatorKind:
    """Return the kind of a name, or raise `InputError`."""
    if name not in _KINDS:
        module = f"{__package__}.{name}"
        if name not in BUILT_IN or find_spec(module) is None:
            known = (*BUILT_IN, *_KINDS)
            raise InputError("kind", f"there is no kind {name!r}", nearest(name, known))
        _KINDS[name] = import_module(module).KIND
    return _KINDS[name]
