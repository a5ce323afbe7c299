"""Runs the function of a sliced operator in this process, batch after batch, without Spark."""

from collections.abc import Mapping
from uuid import uuid4

import pyarrow as pa

from penstock.pipelines.kinds.sliced import slicing_of
from penstock.pipelines.operator import Operator
from penstock.pipelines.stateful.slice_call import call_slice, split_inputs
from penstock.pipelines.stateful.slice_options import state_schemas
from penstock.state.handle import State
from penstock.state.merge import newest
from penstock.state.sorted_layer import SortedLayer


class LocalOperator:
    """One operator with the state of its slices, in memory."""

    def __init__(self, operator: Operator, schemas: Mapping[str, pa.Schema]) -> None:
        self._operator, self._slicing = operator, slicing_of(operator)
        inputs = {topic: schemas[topic] for topic in operator.reads}
        self._key, self._values = state_schemas(self._slicing, inputs)
        self._layers: dict[int, SortedLayer] = {}
        #: By slice: a name of its state.
        self._tokens: dict[int, str] = {}
        #: Rows that were read of each input.
        self._ends = dict.fromkeys(operator.reads, 0)

    def run(self, inputs: Mapping[str, pa.RecordBatch]) -> dict[str, pa.RecordBatch]:
        """Process one batch; return the rows of each output topic, slice after slice."""
        starts = self._ends
        self._ends = {topic: starts[topic] + inputs[topic].num_rows for topic in starts}
        schemas = self._operator.output_schemas
        results: dict[str, list[pa.RecordBatch]] = {}
        for number, rows in split_inputs(self._slicing, inputs).items():
            state = self._open(number, starts)
            written = call_slice(self._operator.function, rows, state, schemas)
            for topic, batch in written.items():
                results.setdefault(topic, []).append(batch)
            self._keep(number, state.changes())
        return {topic: pa.concat_batches(parts) for topic, parts in results.items()}

    def count_stored(self) -> int:
        """Return the rows of the state of all slices."""
        states = [self._open(number, self._ends) for number in self._layers]
        return sum(rows.num_rows for state in states for rows in state.scan())

    def _open(self, number: int, starts: Mapping[str, int]) -> State:
        return State.open(
            self._key,
            self._values,
            [self._layers[number]] if number in self._layers else [],
            slice=number,
            token=self._tokens.setdefault(number, uuid4().hex),
            input_starts=starts,
            input_ends=self._ends,
        )

    def _keep(self, number: int, changes: SortedLayer | None) -> None:
        if changes is None:
            return
        chunks = [*changes.chunks, *(self._layers[number].chunks if number in self._layers else ())]
        self._layers[number] = SortedLayer([newest(chunks, len(self._key))])
        del self._tokens[number]
