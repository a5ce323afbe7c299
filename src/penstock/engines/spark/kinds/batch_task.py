"""The task of a batch operator: map the input, call the function, write the output.

Runs inside the sink's process; no data row passes the JVM.
"""

import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.cluster.worker_process import close_resources_at_exit
from penstock.engines.spark.io.call_marker import CallMarker
from penstock.engines.spark.io.outputs import RowOutputs, TaskOutputs
from penstock.engines.spark.io.plans import InputPart, TaskInput
from penstock.engines.spark.kinds.chain_outputs import add_members, make_chain
from penstock.engines.spark.kinds.failed_rows import (
    FailedRow,
    Results,
    build_letter,
    call_healthy,
)
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.failures import Failure, format_trace, save
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.cpu_clock import processor_s
from penstock.pipelines.function_call import CHUNK_ROWS, call_batch
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import resource_of
from penstock.pipelines.topic_declaration import errors_topic


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
            start, before = time.perf_counter(), calls.own_rows_out
            calls.process(part, offset, chunk)
            took_s = time.perf_counter() - start
            busy_s += took_s
            squares += took_s * took_s / chunk.num_rows
            chunks += 1
            rows_in += chunk.num_rows
            by_input[part.topic] += chunk.num_rows
            surplus = calls.own_rows_out - before - chunk.num_rows
            removed, added = removed + max(0, -surplus), added + max(0, surplus)
    record = TaskRecord(
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
    return add_members(record, calls.chain)


class _Calls:
    """Calls the function of an operator and isolates rows on which it fails."""

    def __init__(
        self,
        layout: RunLayout,
        operator: Operator,
        resource: object,
        outputs: RowOutputs,
        marker: CallMarker,
    ) -> None:
        self._layout, self._operator, self._resource = layout, operator.head, resource
        #: The other members of its chain; None without a chain.
        self.chain = make_chain(layout, operator, outputs, marker)
        self._outputs = outputs if self.chain is None else self.chain
        self._marker = marker
        #: Rows that went to the error topic.
        self.put_aside = 0

    @property
    def own_rows_out(self) -> int:
        """Rows that the function returned or failed on."""
        rows = self._outputs.rows if self.chain is None else self.chain.passed_rows
        return rows + self.put_aside

    def process(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> None:
        """Write the results of some rows, and put aside those on which the function fails."""
        if self._operator.options.on_error != "dead-letter":
            self._process_all(part, passed, chunk)
            return
        first = part.offset + passed
        if self._marker.is_suspect(part.topic, first, first + chunk.num_rows):
            self._process_singly(part, passed, chunk)
            return
        try:
            results = self._call(part, passed, chunk)
        except Exception:
            self._process_healthy(part, passed, chunk)
        else:
            self._write(results)

    def _process_all(self, part: InputPart, passed: int, chunk: pa.RecordBatch) -> None:
        try:
            self._write(self._call(part, passed, chunk))
        except Exception:
            member = self.chain.failed_member if self.chain is not None else ""
            failure = _build_failure(part, passed, chunk.num_rows, member)
            save(self._layout, self._operator.name, failure)
            raise

    def _call(self, part: InputPart, passed: int, rows: pa.RecordBatch) -> Results:
        first = part.offset + passed
        self._marker.enter(part.topic, first, first + rows.num_rows)
        with self._marker.limit():
            return call_batch(self._operator, rows, self._resource)

    def _write(self, results: Results) -> None:
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
        for result in call_healthy(chunk, partial(self._call, part), passed):
            if isinstance(result, FailedRow):
                self._put_aside(part, result.place, result.row, result.problem)
            else:
                self._write(result)

    def _put_aside(self, part: InputPart, passed: int, row: pa.RecordBatch, problem: str) -> None:
        topic = errors_topic(self._operator.name)
        schema, offset = self._outputs.schema(topic), part.offset + passed
        self._outputs.write(build_letter(part.topic, offset, row, problem, schema), topic)
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


def _build_failure(part: InputPart, passed: int, rows: int, member: str) -> Failure:
    first, trace = part.offset + passed, format_trace()
    return Failure(topic=part.topic, first=first, end=first + rows, trace=trace, member=member)
