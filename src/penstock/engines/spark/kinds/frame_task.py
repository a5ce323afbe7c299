"""Tasks that write rows which come out of Spark: of frame, native and ingest operators."""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import TaskInput
from penstock.engines.spark.kinds.batch_task import copy_dropped
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.pipelines.stateful.groups import pc
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT


def write_frame(
    bundle: OperatorBundle, task: TaskInput, rows: Iterator[pa.RecordBatch], outputs: TaskOutputs
) -> TaskRecord:
    """Write a task's rows; source, function and sink are pipelined, so all of it is busy."""
    copy_dropped(bundle, task, outputs)
    began, start = time.time(), time.perf_counter()
    if outputs.main is not None:
        schema = outputs.schema(outputs.main)
        if bundle.stamped:
            for batch in rows:
                outputs.write(_fit_schema(batch, schema))
        else:
            batches = [batch for batch in rows if batch.num_rows]
            for batch in _add_stamps(batches, task, schema):
                outputs.write(batch)
    return TaskRecord(
        rows_in=task.own_rows,
        rows_out=outputs.rows,
        busy_s=time.perf_counter() - start,
        cpu_s=None,  # the JVM, which does most of the work, does not report it by task
        began=began,
        ended=time.time(),
    )


def write_native(
    bundle: OperatorBundle, stamp_us: int, rows: Iterator[pa.RecordBatch], outputs: TaskOutputs
) -> TaskRecord:
    """Write the output of Spark's own state; rows without a stamp get that of the batch.

    Only the task of the state counts as busy; reading and shuffling come before it. Spark does
    not report how many input rows a task got.
    """
    began, start = time.time(), time.perf_counter()
    assert outputs.main is not None
    schema = outputs.schema(outputs.main)
    for batch in rows:
        if not bundle.stamped:
            stamps = pa.array([stamp_us] * batch.num_rows, schema.field(EVENT).type)
            batch = batch.append_column(EVENT, stamps)
        outputs.write(_fit_schema(batch, schema))
    return TaskRecord(
        rows_in=0,
        rows_out=outputs.rows,
        busy_s=time.perf_counter() - start,
        cpu_s=None,
        began=began,
        ended=time.time(),
    )


def write_ingest(
    bundle: OperatorBundle, rows: Iterator[pa.RecordBatch], outputs: TaskOutputs
) -> TaskRecord:
    """Write the rows of an external stream, each with its event time."""
    began, start = time.time(), time.perf_counter()
    assert outputs.main is not None
    schema = outputs.schema(outputs.main)
    column = bundle.operator.options.time or (EVENT if bundle.stamped else None)
    for batch in rows:
        stamps = read_event_times(batch, column, time.time())
        others = batch.drop_columns([EVENT]) if EVENT in batch.schema.names else batch
        outputs.write(_fit_schema(others.append_column(EVENT, stamps), schema))
    return TaskRecord(
        rows_in=outputs.rows,
        rows_out=outputs.rows,
        busy_s=time.perf_counter() - start,
        cpu_s=None,
        began=began,
        ended=time.time(),
    )


def read_event_times(batch: pa.RecordBatch, column: str | None, now: float) -> pa.Array:
    """Return the event time of each row: the named column, or the arrival if none is named.

    A row without a time gets the newest time of its batch: its arrival would advance the
    watermark of an old backlog to now, and other rows would be late. Times without a zone are UTC.
    """
    arrival = pa.scalar(int(now * 1e6), TIMESTAMP)
    if column is None:
        return pa.repeat(arrival, batch.num_rows)
    times = batch[column].cast(TIMESTAMP)
    newest = pc.max(times)
    return times.fill_null(newest if newest.is_valid else arrival)


def _fit_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns and types of the topic's schema."""
    columns = [batch[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _add_stamps(
    batches: list[pa.RecordBatch], task: TaskInput, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Give each row the stamp of the input row at the same relative position."""
    total = sum(batch.num_rows for batch in batches)
    if not total:
        return
    stamps = pa.concat_arrays([batch[EVENT] for _, _, batch in task.batches([EVENT])])
    places = np.arange(total) * len(stamps) // total
    passed = 0
    for batch in batches:
        own_stamps = stamps.take(pa.array(places[passed : passed + batch.num_rows]))
        yield _fit_schema(batch.append_column(EVENT, own_stamps), schema)
        passed += batch.num_rows
