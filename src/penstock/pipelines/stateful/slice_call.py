"""Calls a function for one slice; shared by the engine and the try-out."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.output_rows import split_outputs
from penstock.pipelines.row_conversion import fit_rows
from penstock.pipelines.source_location import place_of
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.state.handle import State
from penstock.topics.hashing import hash_keys, split
from penstock.topics.schema import EVENT, with_event

#: A function for a sliced operator: fn(batch, state), or fn(inputs, state) if there are several.
SliceFunction = Callable[[Any, State], Any]
Inputs = Mapping[str, pa.RecordBatch]


def call_slice(
    function: SliceFunction, inputs: Inputs, state: State, schemas: Mapping[str, pa.Schema]
) -> dict[str, pa.RecordBatch]:
    """Call a function with the rows and the state of a slice; return its rows by topic.

    `inputs` has every input in the order of declaration, empty where a slice has no rows; a
    function with a single input gets only that batch. `schemas` are those of the outputs.
    Exceptions of the function propagate; `InputError` means that its result does not fit.
    """
    given = next(iter(inputs.values())) if len(inputs) == 1 else inputs
    result = function(given, state)
    try:
        outputs = {
            topic: _fitted(rows, schemas[topic])
            for topic, rows in split_outputs(result, tuple(schemas)).items()
        }
    except InputError as wrong:
        raise wrong.at(place_of(function)) from None
    return {topic: rows for topic, rows in outputs.items() if rows.num_rows}


def split_inputs(slicing: Slicing, inputs: Inputs) -> dict[int, dict[str, pa.RecordBatch]]:
    """Return the inputs of each slice that has rows, in the order of slices.

    Rows of an input keep their order. Rows of a broadcast input go to every slice.
    """
    parts = {topic: _split(rows, slicing, topic) for topic, rows in inputs.items()}
    none = {topic: rows.slice(0, 0) for topic, rows in inputs.items()}
    slices = sorted(set().union(*parts.values()))
    return {
        number: {topic: parts[topic].get(number, none[topic]) for topic in inputs}
        for number in slices
    }


def _split(rows: pa.RecordBatch, slicing: Slicing, topic: str) -> Mapping[int, pa.RecordBatch]:
    if not rows.num_rows:
        return {}
    if topic in slicing.broadcast:
        return dict.fromkeys(range(slicing.slices), rows)
    if not (columns := slicing.keys[topic]):
        return {0: rows}
    hashes = hash_keys(rows.select(columns).columns)
    return split(rows, hashes, slicing.slices)


def _fitted(result: Any, schema: pa.Schema) -> pa.RecordBatch:
    if not isinstance(result, pa.RecordBatch | pa.Table | Mapping):
        hint = "a pa.RecordBatch, a pa.Table, a dictionary of columns, or None for no rows"
        raise InputError("result", f"must be rows, got {type(result).__name__}", hint)
    names = result.keys() if isinstance(result, Mapping) else result.schema.names
    if EVENT not in names:
        hint = "give each row the _event of the newest row it is derived from"
        raise InputError("result", f"column {EVENT!r} is missing", hint)
    return fit_rows(result, with_event(schema))
