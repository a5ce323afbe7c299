"""The task of a sliced operator: rows and state of its slices in, rows and state out.

One task processes a slice in a batch. Its files count only when the batch record names them, so
a failed attempt has no effect.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.microbatch.slice_assignment import SliceAssignment
from penstock.engines.spark.io.call_marker import CallMarker
from penstock.engines.spark.io.outputs import RowOutputs, TaskOutputs
from penstock.engines.spark.io.plans import InputPart, TaskInput
from penstock.engines.spark.kinds.chain_outputs import add_members, make_chain
from penstock.engines.spark.kinds.host_core import HostCore
from penstock.engines.spark.kinds.kind import TaskResult
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.failures import Failure, format_trace, save
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import OutageError
from penstock.pipelines.cpu_clock import processor_s
from penstock.pipelines.function_call import CHUNK_ROWS
from penstock.pipelines.kinds.sliced import slicing_of
from penstock.pipelines.stateful.slice_call import call_slice
from penstock.pipelines.stateful.slice_options import Slicing, state_schemas
from penstock.pipelines.stateful.watermark import latest_of, latest_time
from penstock.state.compaction import choose_merges, merge_files
from penstock.state.handle import State
from penstock.state.layout import StateLayout, make_layout
from penstock.state.mapped_files import LayerCache
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile, StateFileWriter, extras_of
from penstock.state.version import FileMerge, file_names
from penstock.topics.schema import with_event

#: Rows of each input, by slice.
Inputs = dict[str, pa.RecordBatch]


def run_sliced_task(
    layout: RunLayout, bundle: OperatorBundle, task: TaskInput, outputs: TaskOutputs
) -> TaskResult:
    """Run one task."""
    operator, assignment = bundle.operator, task.assignment
    assert assignment is not None
    began, cpu_began, start = time.time(), processor_s(), time.perf_counter()
    limit_s, chain = operator.options.call_timeout_s, None
    try:
        with CallMarker(layout, operator.name, task.index, limit_s) as marker:
            worker = _Worker(
                layout.state(operator.name),
                bundle,
                slicing_of(operator),
                assignment,
                marker,
                HostCore.of(layout, task.host, task.share),
            )
            marker.enter(*_find_rows(task.parts))
            chain = make_chain(layout, operator, outputs, marker, CHUNK_ROWS)
            worker.run(task, outputs if chain is None else chain)
            if chain is not None:
                chain.flush()
            merged = worker.merge()
    except OutageError:  # of Kafka; no fault of the function
        raise
    except Exception:
        member = chain.failed_member if chain is not None else ""
        save(layout, operator.name, _build_failure(task.parts, member))
        raise
    busy_s = time.perf_counter() - start
    record = TaskRecord(
        rows_in=sum(worker.rows.values()),
        rows_out=outputs.rows,
        busy_s=busy_s,
        cpu_s=processor_s() - cpu_began,
        began=began,
        ended=time.time(),
        slices=assignment.slices,
        loads=tuple(round(worker.seconds.get(number, 0.0), 6) for number in assignment.slices),
        counts=tuple(worker.rows.get(number, 0) for number in assignment.slices),
        slice_cpu_s=tuple(round(probe.cpu_s, 6) for probe in worker.probes),
        slice_bytes_in=tuple(probe.bytes_in for probe in worker.probes),
        slice_bytes_out=tuple(probe.bytes_out for probe in worker.probes),
        slice_state_bytes=tuple(probe.state_bytes for probe in worker.probes),
        host=task.host,
        inputs=worker.count_inputs() if len(slicing_of(operator).inputs) > 1 else {},
        late=worker.late,
    )
    record = add_members(record, chain)
    return TaskResult(task=record, state_files=worker.written, merged=merged)


class _Probe(NamedTuple):
    """What a slice used in a batch."""

    cpu_s: float
    bytes_in: int
    bytes_out: int
    state_bytes: int


class _Worker:
    """Processes the slices of one task."""

    def __init__(
        self,
        directory: Path,
        bundle: OperatorBundle,
        slicing: Slicing,
        assignment: SliceAssignment,
        marker: CallMarker,
        core: HostCore,
    ) -> None:
        self._marker, self._core = marker, core
        self._directory, self._bundle, self._slicing, self._assignment = (
            directory,
            bundle,
            slicing,
            assignment,
        )
        self._key, self._values = state_schemas(slicing, bundle.inputs)
        self._layout = make_layout(self._key, self._values)
        self._layers = _open_layers(directory, self._layout)
        self._layers.keep(file_names(assignment.version))
        self.written: tuple[StateFile, ...] = ()
        self.rows: dict[int, int] = {}
        self._input_rows: dict[int, dict[str, int]] = {}
        self.seconds: dict[int, float] = {}
        #: One for each slice, in their order.
        self.probes: list[_Probe] = []
        self.late = 0

    def run(self, task: TaskInput, outputs: RowOutputs) -> None:
        """Call the function for every slice with rows or due timers; write the changed state."""
        slicing = self._slicing
        parts = gather_rows(task.parts, self._assignment.slices, slicing)
        empty = {
            topic: pa.RecordBatch.from_pylist([], with_event(schema))
            for topic, schema in self._bundle.inputs.items()
        }
        changed: dict[int, SortedLayer] = {}
        for number in self._assignment.slices:
            start = time.perf_counter()
            inputs = {topic: parts[topic].get(number, empty[topic]) for topic in empty}
            bytes_before = outputs.bytes
            with self._core.occupy() as usage:
                layer = self._run_slice(number, inputs, outputs)
            probe = _Probe(
                cpu_s=usage.cpu_s,
                bytes_in=sum(rows.nbytes for rows in inputs.values()),
                bytes_out=outputs.bytes - bytes_before,
                state_bytes=sum(file.bytes for file in self._assignment.version.of(number)),
            )
            self.probes.append(probe)
            if layer is not None:
                changed[number] = layer
            # broadcast rows are counted with the first slice
            counted = slicing.inputs if number == 0 else tuple(slicing.keys)
            self._input_rows[number] = {topic: inputs[topic].num_rows for topic in inputs}
            self.rows[number] = sum(inputs[topic].num_rows for topic in counted)
            self.seconds[number] = time.perf_counter() - start
        self.written = self._write(changed)

    def count_inputs(self) -> dict[str, tuple[int, ...]]:
        """Return the rows of each input that each slice got."""
        slices = self._assignment.slices
        return {
            topic: tuple(self._input_rows[number][topic] for number in slices)
            for topic in self._slicing.inputs
        }

    def _run_slice(self, number: int, inputs: Inputs, outputs: RowOutputs) -> SortedLayer | None:
        assignment, operator = self._assignment, self._bundle.operator.head
        times = [latest_time(inputs[t], self._slicing.time) for t in self._slicing.keys]
        version, ttl_us = assignment.version, self._slicing.ttl_us
        # what has expired depends on watermarks
        expires_by = () if ttl_us is None else (assignment.watermark, version.watermark)
        state = State.open(
            self._key,
            self._values,
            self._layers.open(version.of(number)),
            slice=number,
            watermark=assignment.watermark,
            before=version.watermark,
            # of this slice alone, so that the assignment of slices does not matter
            now=latest_of(*times),
            ttl_us=ttl_us,
            token=version.token(number, expires_by),
            input_starts=assignment.starts,
            input_ends=assignment.ends,
        )
        if not any(rows.num_rows for rows in inputs.values()) and not state.is_due():
            return None
        with self._marker.limit():
            results = call_slice(operator.function, inputs, state, operator.output_schemas)
        for topic, written in results.items():
            outputs.write(written, topic)
        for rows in state.late_rows:
            self.late += rows.num_rows
            if self._slicing.late_to is not None:
                outputs.write(rows, self._slicing.late_to)
        return state.changes()

    def _write(self, changed: Mapping[int, SortedLayer]) -> tuple[StateFile, ...]:
        """Write one file for all slices of the task."""
        if not changed:
            return ()
        writer = StateFileWriter(self._directory, self._layout, extras_of(changed.values()))
        try:
            for number, layer in changed.items():
                writer.write(number, layer.chunks, layer.at)
            return writer.close()
        except BaseException:
            writer.abort()
            raise

    def merge(self) -> tuple[FileMerge, ...]:
        """Compact the slices that are due."""
        assignment = self._assignment
        chosen = choose_merges(assignment.version, assignment.batch, assignment.slices)
        if not chosen:
            return ()
        merged = merge_files(
            self._directory,
            self._layout,
            self._layers,
            assignment.version,
            chosen,
            watermark=assignment.watermark,
            ttl_us=self._slicing.ttl_us,
        )
        return tuple(merged)


def gather_rows(
    parts: Sequence[InputPart], slices: Sequence[int], slicing: Slicing
) -> dict[str, dict[int, pa.RecordBatch]]:
    """Return the rows of each input, by slice, in the order of its topic."""
    return {
        topic: (_read_broadcast if topic in slicing.broadcast else _read_keyed)(
            [part for part in parts if part.topic == topic], slices
        )
        for topic in slicing.inputs
    }


def _read_keyed(parts: Sequence[InputPart], slices: Sequence[int]) -> dict[int, pa.RecordBatch]:
    by_slice: dict[int, list[pa.RecordBatch]] = {}
    for part in parts:
        for number, rows in part.piece.read_slices(slices):
            by_slice.setdefault(number, []).append(rows)
    return {number: _join(batches) for number, batches in by_slice.items()}


def _read_broadcast(parts: Sequence[InputPart], slices: Sequence[int]) -> dict[int, pa.RecordBatch]:
    batches = [batch for part in parts for batch in part.read()]
    # all slices share one copy
    return dict.fromkeys(slices, _join(batches)) if batches else {}


def _join(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _build_failure(parts: Sequence[InputPart], member: str) -> Failure:
    topic, first, end = _find_rows(parts)
    return Failure(topic=topic, first=first, end=end, trace=format_trace(), member=member)


def _find_rows(parts: Sequence[InputPart]) -> tuple[str, int, int]:
    """Return the rows of the first topic of a task, which include those of its slices."""
    topic = parts[0].topic if parts else ""
    own = [part for part in parts if part.topic == topic]
    first = min((part.offset for part in own), default=0)
    return topic, first, max((part.offset + part.rows for part in own), default=0)


#: Mapped files of this process; file names are unique, so entries never become stale.
_mapped: dict[Path, LayerCache] = {}


def _open_layers(directory: Path, columns: StateLayout) -> LayerCache:
    if directory not in _mapped:
        _mapped[directory] = LayerCache(directory, columns)
    return _mapped[directory]
