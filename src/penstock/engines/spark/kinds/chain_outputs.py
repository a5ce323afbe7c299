"""The outputs of the first operator of a chain: its rows pass through the other members.

Tasks write to them as to segments. No row between two members is stored.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.microbatch.chain_members import MemberRecord
from penstock.engines.spark.io.call_marker import CallMarker
from penstock.engines.spark.io.outputs import RowOutputs
from penstock.engines.spark.kinds.failed_rows import (
    FailedRow,
    Results,
    build_letter,
    call_healthy,
)
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.function_call import CHUNK_ROWS, call_batch, chunks
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import resource_of
from penstock.pipelines.topic_declaration import errors_topic


@dataclass(slots=True)
class _Member:
    """A member behind the first one, and its measures."""

    operator: Operator
    resource: object
    rows_in: int = 0
    rows_out: int = 0
    busy_s: float = 0.0
    put_aside: int = 0
    #: Rows that its calls removed, and rows that they added.
    filtered: int = 0
    expanded: int = 0

    @property
    def topic(self) -> str:
        """The topic that it would read without the chain."""
        return self.operator.reads[0]


@dataclass(slots=True, kw_only=True)
class ChainOutputs:
    """The rows that the first operator of a chain writes, on their way to the last topic."""

    chain: Operator
    outputs: RowOutputs
    marker: CallMarker
    #: The run, which has its own resources in a process.
    run: str
    #: Rows of the first operator that are gathered before the second one is called.
    gather_rows: int = 1
    #: The member that failed; empty if none did.
    failed_member: str = ""
    bytes: int = 0
    #: Rows that the first operator wrote for the second.
    passed_rows: int = 0
    _members: list[_Member] = field(init=False)
    _gathered: list[pa.RecordBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        # opened once per process; does not count as busy
        self._members = [
            _Member(operator, resource_of(operator, self.run))
            for operator in self.chain.members[1:]
        ]

    @property
    def rows(self) -> int:
        """Rows that the last member wrote to its main topic."""
        return self.outputs.rows

    @property
    def put_aside(self) -> int:
        """Rows that members behind the first one have put aside."""
        return sum(member.put_aside for member in self._members)

    @property
    def filtered(self) -> int:
        """Rows that members behind the first one have removed."""
        return sum(member.filtered for member in self._members)

    @property
    def expanded(self) -> int:
        """Rows that members behind the first one have added."""
        return sum(member.expanded for member in self._members)

    def schema(self, topic: str) -> pa.Schema:
        """The schema of a topic that the chain writes."""
        return self.outputs.schema(topic)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Give rows of the first operator to the second; other topics are written as they are."""
        if not batch.num_rows:
            return
        self.bytes += batch.nbytes
        if topic is not None and topic != self._members[0].topic:
            self.outputs.write(batch, topic)
            return
        self.passed_rows += batch.num_rows
        self._gathered.append(batch)
        if sum(rows.num_rows for rows in self._gathered) >= self.gather_rows:
            self.flush()

    def flush(self) -> None:
        """Let the members process what was gathered."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        rows = gathered[0] if len(gathered) == 1 else pa.concat_batches(gathered)
        self._process(0, rows)
        self.marker.enter_member("")

    def _process(self, index: int, batch: pa.RecordBatch) -> None:
        member = self._members[index]
        is_last = index + 1 == len(self._members)
        for chunk in chunks(batch, member.operator.options.chunk_rows or CHUNK_ROWS):
            member.rows_in += chunk.num_rows
            before = member.rows_out + member.put_aside
            for results in self._call(member, chunk):
                for topic, rows in results.items():
                    member.rows_out += rows.num_rows if topic == member.operator.writes else 0
                    if is_last:
                        start = time.perf_counter()
                        self.outputs.write(rows, topic)
                        member.busy_s += time.perf_counter() - start
                    else:
                        self._process(index + 1, rows)
            surplus = member.rows_out + member.put_aside - before - chunk.num_rows
            member.filtered += max(0, -surplus)
            member.expanded += max(0, surplus)

    def _call(self, member: _Member, rows: pa.RecordBatch) -> Iterator[Results]:
        call = partial(self._call_member, member)
        if member.operator.options.on_error != "dead-letter":
            try:
                results = call(0, rows)
            except Exception:
                self.failed_member = member.operator.name
                raise
            yield results
            return
        for result in call_healthy(rows, call):
            if isinstance(result, FailedRow):
                self._put_aside(member, result)
            else:
                yield result

    def _call_member(self, member: _Member, place: int, rows: pa.RecordBatch) -> Results:  # noqa: ARG002
        self.marker.enter_member(member.operator.name)
        start = time.perf_counter()
        try:
            return call_batch(member.operator, rows, member.resource)
        finally:
            member.busy_s += time.perf_counter() - start

    def _put_aside(self, member: _Member, failed: FailedRow) -> None:
        topic = errors_topic(member.operator.name)
        letter = build_letter(member.topic, None, failed.row, failed.problem, self.schema(topic))
        self.outputs.write(letter, topic)
        member.put_aside += 1

    def records(self, first: TaskRecord) -> tuple[MemberRecord, ...]:
        """Return the records of all members; `first` is that of the first one, with all seconds."""
        others = tuple(
            MemberRecord(
                name=member.operator.name,
                rows_in=member.rows_in,
                rows_out=member.rows_out,
                busy_s=member.busy_s,
                put_aside=member.put_aside,
            )
            for member in self._members
        )
        own = MemberRecord(
            name=self.chain.name,
            rows_in=first.rows_in,
            rows_out=self.passed_rows,
            busy_s=max(0.0, first.busy_s - sum(member.busy_s for member in others)),
            put_aside=first.put_aside,
        )
        return (own, *others)


def add_members(record: TaskRecord, chain: ChainOutputs | None) -> TaskRecord:
    """Add what the members of a chain did to the record of its first operator."""
    if chain is None:
        return record
    return replace(
        record,
        filtered=record.filtered + chain.filtered,
        expanded=record.expanded + chain.expanded,
        put_aside=record.put_aside + chain.put_aside,
        members=chain.records(record),
    )


def make_chain(
    layout: RunLayout,
    operator: Operator,
    outputs: RowOutputs,
    marker: CallMarker,
    gather_rows: int = 1,
) -> ChainOutputs | None:
    """Return the outputs of the first operator of a chain; None if it is no chain."""
    if not operator.members:
        return None
    return ChainOutputs(
        chain=operator,
        outputs=outputs,
        marker=marker,
        run=str(layout.run),
        gather_rows=gather_rows,
    )
