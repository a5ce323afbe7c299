"""The task of a batch operator: map the input, call the function, write the output.

Runs inside the sink's process; no data row passes the JVM.
"""

import json
import time
from collections.abc import Iterator

import pyarrow as pa

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.cluster.worker_process import close_resources_at_exit
from penstock.engines.spark.io.call_marker import CallMarker
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import InputPart, TaskInput
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.failures import Failure, format_trace, save
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.cpu_clock import processor_s
from penstock.pipelines.function_call import call_batch
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import resource_of
from penstock.pipelines.topic_declaration import errors_topic
from penstock.topics.schema import EVENT

#: Rows of one call, unless the operator sets `chunk_rows`.
CHUNK_ROWS = 65_536


def run_batch_task(
    layout: RunLayout, bundle: OperatorBundle, task: TaskInput, outputs: TaskOutputs
) -> TaskRecord:
    """Run one task; return its record."""
    operator = bundle.operator
    close_resources_at_exit()
    resource = resource_of(
        operator, str(layout.run)
    )  # opened once per process; does not count as busy
    copy_dropped(bundle, task, outputs)
    began, cpu_began = time.time(), processor_s()
    busy_s, squares, chunks, rows_in, removed, added = 0.0, 0.0, 0, 0, 0, 0
    by_input = dict.fromkeys(operator.reads, 0)
    limit_s = operator.options.call_timeout_s
    with CallMarker(layout, operator.name, task.index, limit_s) as marker:
        calls = _Calls(layout, operator, resource, outputs, marker)
        for part, offset, chunk in _read_chunks(task, operator.options.chunk_rows or CHUNK_ROWS):
            start, before = time.perf_counter(), outputs.rows
            put_aside = calls.process(part, offset, chunk)
            took_s = time.perf_counter() - start
            busy_s += took_s
            squares += took_s * took_s / chunk.num_rows
            chunks += 1
            rows_in += chunk.num_rows
            by_input[part.topic] += chunk.num_rows
            surplus = outputs.rows - before + put_aside - chunk.num_rows
            removed, added = removed + max(0, -surplus), added + max(0, surplus)
    return TaskRecord(
        rows_in=rows_in,
        rows_out=outputs.rows,
        busy_s=busy_s,
        cpu_s=processor_s() - cpu_began,
        began=began,
        ended=time.time(),
        chunks=chunks,
        squares=squares,
        inputs={t: (rows,) for t, rows in by_input.items()} if len(by_input) > 1 else {},
        filtered=removed,
        expanded=added,
        put_aside=calls.put_aside,
    )


class _Calls:
    """Calls the function of an operator and isolates rows on which it fails."""

    def __init__(
        self,
        layout: RunLayout,
        operator: Operator,
        resource: object,
        outputs: TaskOutputs,
        marker: CallMarker,
    ) -> None:
        self._layout, self._operator, self._resource = layout, operator, resource
        self._outputs, self._marker = outputs, marker
        #: Rows that went to the error topic.
        self.put_aside = 0

    def process(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> int:
        """Write the results of some rows; return how many rows were put aside."""
        before, first = self.put_aside, part.offset + passed
        keeps_letters = self._operator.options.on_error == "dead-letter"
        if keeps_letters and self._marker.is_suspect(part.topic, first, first + chunk.num_rows):
            self._process_singly(part, passed, chunk)
            return self.put_aside - before
        try:
            self._write(part, passed, chunk)
        except Exception:
            if not keeps_letters:
                save(
                    self._layout, self._operator.name, _build_failure(part, passed, chunk.num_rows)
                )
                raise
            self._process_healthy(part, passed, chunk)
        return self.put_aside - before

    def _write(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> None:
        first = part.offset + passed
        self._marker.enter(part.topic, first, first + chunk.num_rows)
        with self._marker.limit():
            results = call_batch(self._operator, chunk, self._resource)
        for topic, rows in results.items():
            self._outputs.write(rows, topic)

    def _process_singly(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> None:
        """Process rows one by one after a crash; put aside those with two crashes."""
        for number in range(chunk.num_rows):
            row = chunk.slice(number, 1)
            problem = self._marker.poison(part.topic, part.offset + passed + number)
            if problem:
                self._put_aside(part, passed + number, row, problem)
            else:
                self._process_healthy(part, passed + number, row)

    def _process_healthy(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> None:
        """Process rows; put those aside on which the function raises, found by bisection."""
        try:
            self._write(part, passed, chunk)
        except Exception as error:
            if chunk.num_rows == 1:
                self._put_aside(part, passed, chunk, f"{type(error).__name__}: {error}")
                return
            half = chunk.num_rows // 2
            for begin, rows in ((0, half), (half, chunk.num_rows - half)):
                self._process_healthy(part, passed + begin, chunk.slice(begin, rows))

    def _put_aside(self, part: InputPart, passed: int, row: pa.RecordBatch, problem: str) -> None:
        topic = errors_topic(self._operator.name)
        letter = _build_letter(part, passed, row, problem, self._outputs.schema(topic))
        self._outputs.write(letter, topic)
        self.put_aside += 1


def copy_dropped(bundle: OperatorBundle, task: TaskInput, outputs: TaskOutputs) -> None:
    """Copy dropped rows to the topic that the operator names for them."""
    name = bundle.operator.options.dropped_to
    for part in task.given_up if name else ():
        for batch in part.read():
            outputs.write(batch, name)


def _read_chunks(task: TaskInput, size: int) -> Iterator[tuple[InputPart, int, pa.RecordBatch]]:
    """Yield (part, rows of the part before, at most `size` rows)."""
    for part, passed, batch in task.batches():
        for begin in range(0, batch.num_rows, size):
            yield part, passed + begin, batch.slice(begin, size)


def _build_failure(part: InputPart, passed: int, rows: int) -> Failure:
    first = part.offset + passed
    return Failure(topic=part.topic, first=first, end=first + rows, trace=format_trace())


def _build_letter(
    part: InputPart, passed: int, row: pa.RecordBatch, problem: str, schema: pa.Schema
) -> pa.RecordBatch:
    text = json.dumps(row.drop_columns([EVENT]).to_pylist()[0], default=str)
    columns = {
        "topic": [part.topic],
        "offset": [part.offset + passed],
        "error": [problem],
        "row": [text],
        EVENT: row[EVENT],
    }
    return pa.RecordBatch.from_pydict(columns, schema=schema)
