"""Calling the function that makes the rows of a topic, as a producer needs it."""

import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.row_conversion import fit_rows
from penstock.pipelines.source_location import line_of, place_of
from penstock.pipelines.topic_declaration import MakeRows


def fitted(make: MakeRows, schema: pa.Schema) -> MakeRows:
    """Return the function with rows under exactly this schema, whatever form it gives them.

    It may return a table, a batch or a dictionary of columns; an error names its line.
    """

    def make_fitted(first_id: int, due: pa.Array) -> pa.Table:
        try:
            return pa.Table.from_batches([fit_rows(call_make(make, first_id, due), schema)])
        except InputError as wrong:
            raise wrong.at(wrong.where or place_of(make)) from wrong.__cause__

    return make_fitted


def call_make(make: MakeRows, first_id: int, due: pa.Array) -> pa.Table:
    """Call the function and return its rows as a table."""
    try:
        rows = make(first_id, due)
        return rows if isinstance(rows, pa.Table) else pa.table(rows)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() in a function must not end the command
        name = getattr(make, "__name__", "function")
        problem = f"cannot be made: {type(error).__name__}: {error}"
        file = place_of(make).rpartition(":")[0]
        raise InputError(name, problem, where=line_of(error, file)) from error
