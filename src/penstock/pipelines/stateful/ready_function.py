"""The base of ready-made functions: their key, their time column, and what follows from them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.stateful.columns import column_of, time_of
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.state.handle import State
from penstock.topics.schema import EVENT, schema_text, with_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns of state and output of a ready-made function, for given inputs."""

    #: Columns that distinguish several rows of one key.
    state_key: Sequence[pa.Field] = ()
    state: Sequence[pa.Field]
    #: Columns of the output, without `_event`.
    output: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(ABC):
    """A ready-made function for a sliced operator.

    It can be pickled, and declares the columns of its state and of its output.
    """

    by: tuple[str, ...]
    #: The column with the time of an event.
    time: str = EVENT

    @abstractmethod
    def __call__(self, given: Any, state: State) -> pa.RecordBatch | dict[str, Any] | None:
        """Process one slice."""

    @abstractmethod
    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output for these inputs, or raise `InputError`."""

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the key columns of each input."""
        return {self._only(inputs): self.by}

    @property
    def forgets(self) -> bool:
        """Whether it deletes closed state by itself."""
        return True

    def slicing(
        self,
        inputs: Mapping[str, pa.Schema],
        *,
        slices: int = 64,
        delay_s: float = 0.0,
        ttl_s: float | None = None,
        late_to: str | None = None,
    ) -> Slicing:
        """Return the options of an operator with this function."""
        if ttl_s is not None and self.forgets:
            problem = f"would delete open state of {self._name}, got {ttl_s}"
            raise InputError("ttl_s", problem, "leave it out: closed state is deleted at once")
        shape = self.shape(inputs)
        return Slicing(
            keys=self.keys(tuple(inputs)),
            slices=slices,
            time=self.time,
            delay_s=delay_s,
            ttl_s=ttl_s,
            state=schema_text(pa.schema(shape.state)),
            state_key=schema_text(pa.schema(shape.state_key)),
            late_to=late_to,
        )

    def output_schema(self, inputs: Mapping[str, pa.Schema]) -> pa.Schema:
        """Return the columns of the output, without `_event`."""
        return self.shape(inputs).output

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def _rows_and_key(self, inputs: Mapping[str, pa.Schema]) -> tuple[pa.Schema, list[pa.Field]]:
        """Return the columns of the one input, and those of its key."""
        schema = with_event(inputs[self._only(tuple(inputs))])
        time_of(schema, self.time)
        return schema, [column_of(schema, name, "by") for name in self.by]

    def _only(self, inputs: Sequence[str]) -> str:
        if len(inputs) != 1:
            problem = f"must be one input for {self._name}, got {len(inputs)}"
            raise InputError(
                "reads", problem, "join two inputs, or let an earlier operator write one topic"
            )
        return inputs[0]
