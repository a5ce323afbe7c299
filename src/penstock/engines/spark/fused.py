"""The work of a batch operator's task: map the input, call the function, write the output.

Runs inside the sink's process; no data row passes the JVM.
"""

import json
import time
import traceback
from collections.abc import Iterator

import pyarrow as pa

from penstock.engines.spark.failures import Failure, tell
from penstock.engines.spark.outputs import Outputs
from penstock.engines.spark.places import Places
from penstock.engines.spark.plans import Part, TaskInput
from penstock.engines.spark.records import TaskRecord
from penstock.engines.spark.shipping import Cargo
from penstock.engines.spark.workers import close_at_end
from penstock.pipelines.calling import call_batch
from penstock.pipelines.declared import errors_topic
from penstock.pipelines.emulated import processor_s
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import resource_of
from penstock.topics.schema import EVENT

#: Rows that a function gets at once, if its operator does not say.
CHUNK_ROWS = 65_536


def work(places: Places, cargo: Cargo, task: TaskInput, outputs: Outputs) -> TaskRecord:
    """Do one task and tell what it took."""
    operator = cargo.operator
    close_at_end()
    resource = resource_of(operator, str(places.run))  # opened once a process; not part of the work
    copy_given_up(cargo, task, outputs)
    began, cpu_began = time.time(), processor_s()
    busy_s, squares, chunks, rows_in = 0.0, 0.0, 0, 0
    for part, offset, chunk in _chunks(task, operator.options.chunk_rows or CHUNK_ROWS):
        start = time.perf_counter()
        try:
            result = call_batch(operator, chunk, resource)
        except Exception:
            if operator.options.on_error == "stop":
                tell(places, operator.name, _failure(part, offset, chunk.num_rows))
                raise
            _without_poison(operator, part, offset, chunk, resource, outputs)
            result = None
        if result is not None:
            outputs.write(result)
        took_s = time.perf_counter() - start
        busy_s += took_s
        squares += took_s * took_s / chunk.num_rows
        chunks += 1
        rows_in += chunk.num_rows
    return TaskRecord(
        rows_in=rows_in,
        rows_out=outputs.rows,
        busy_s=busy_s,
        cpu_s=processor_s() - cpu_began,
        began=began,
        ended=time.time(),
        chunks=chunks,
        squares=squares,
    )


def copy_given_up(cargo: Cargo, task: TaskInput, outputs: Outputs) -> None:
    """Keep the rows that waited too long or did not fit in the topic that was named for them."""
    name = cargo.operator.options.dropped_to
    for part in task.given_up if name else ():
        for batch in part.read():
            outputs.write(batch, name)


def _chunks(task: TaskInput, size: int) -> Iterator[tuple[Part, int, pa.RecordBatch]]:
    """Yield (part, rows of it before, at most `size` rows)."""
    for part, passed, batch in task.batches():
        for begin in range(0, batch.num_rows, size):
            yield part, passed + begin, batch.slice(begin, size)


def _failure(part: Part, passed: int, rows: int) -> Failure:
    first = part.offset + passed
    return Failure(
        topic=part.topic, first=first, end=first + rows, trace=traceback.format_exc().rstrip()
    )


def _without_poison(
    operator: Operator,
    part: Part,
    passed: int,
    chunk: pa.RecordBatch,
    resource: object,
    outputs: Outputs,
) -> None:
    """Process what can be, and send the rows that make the function raise to the error topic."""
    try:
        result = call_batch(operator, chunk, resource)
    except Exception as error:
        if chunk.num_rows == 1:
            outputs.write(
                _letter(operator, part, passed, chunk, error, outputs), errors_topic(operator.name)
            )
            return
        half = chunk.num_rows // 2
        for begin, rows in ((0, half), (half, chunk.num_rows - half)):
            piece = chunk.slice(begin, rows)
            _without_poison(operator, part, passed + begin, piece, resource, outputs)
        return
    if result is not None:
        outputs.write(result)


def _letter(
    operator: Operator,
    part: Part,
    passed: int,
    row: pa.RecordBatch,
    error: Exception,
    outputs: Outputs,
) -> pa.RecordBatch:
    text = json.dumps(row.drop_columns([EVENT]).to_pylist()[0], default=str)
    problem = f"{type(error).__name__}: {error}"
    columns = {
        "topic": [part.topic],
        "offset": [part.offset + passed],
        "error": [problem],
        "row": [text],
        EVENT: row[EVENT],
    }
    return pa.RecordBatch.from_pydict(columns, schema=outputs.schema(errors_topic(operator.name)))
