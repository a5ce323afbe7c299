"""Arrow IPC values of messages: each holds many rows and their schema. Pure."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.errors import InputError
from penstock.topics.kafka.messages import MessageBlock
from penstock.topics.schema import fit

#: Rows of one message; its bytes stay below the default limit of a broker, 1 MB, if rows are small.
ROWS_PER_MESSAGE = 1000
#: The largest message, below that limit.
MAX_MESSAGE_BYTES = 900_000


def decode_arrow(block: MessageBlock, schema: pa.Schema) -> tuple[dict[str, pa.Array], list[int]]:
    """Return the columns of a block, and the number of rows of each message."""
    tables, counts = [schema.empty_table()], []
    for number, value in enumerate(block.values):
        table = _read(block, number, value)
        try:
            fitted = fit(table, schema)
        except InputError as wrong:
            raise wrong.at(block.describe(number)) from None
        assert isinstance(fitted, pa.Table)
        tables.append(fitted)
        counts.append(fitted.num_rows)
    rows = pa.concat_tables(tables).combine_chunks()
    columns = {
        name: pa.array([], schema.field(name).type) if not rows.num_rows else column.chunk(0)
        for name, column in zip(schema.names, rows.columns, strict=True)
    }
    return columns, counts


def _read(block: MessageBlock, number: int, value: bytes | None) -> pa.Table:
    try:
        return pa.ipc.open_stream(value or b"").read_all()
    except (pa.ArrowInvalid, OSError) as error:
        problem = f"is not an Arrow IPC stream: {str(error).splitlines()[0]}"
        hint = "for JSON read with values='json', for anything else with values='bytes'"
        raise InputError("value", problem, hint, block.describe(number)) from None


def encode_arrow(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Yield messages of up to `ROWS_PER_MESSAGE` rows; fewer if the rows are large."""
    for start in range(0, rows.num_rows, ROWS_PER_MESSAGE):
        yield from _encode(rows.slice(start, ROWS_PER_MESSAGE))


def _encode(rows: pa.RecordBatch) -> Iterator[bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    data = sink.getvalue().to_pybytes()
    if len(data) <= MAX_MESSAGE_BYTES or rows.num_rows <= 1:
        yield data
        return
    middle = rows.num_rows // 2
    yield from _encode(rows.slice(0, middle))
    yield from _encode(rows.slice(middle))
