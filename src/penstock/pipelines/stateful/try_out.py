"""Tries a function with state on a few batches, without a stream and without Spark.

>>> import pyarrow as pa
>>> from penstock.pipelines.stateful.slice_options import Slicing
>>> def spent(batch, state):
...     known = state.get(batch.select(["user"]))
...     new = {"user": batch["user"], "cost": batch["cost"]}
...     state.put(new)
...     return new | {"before": known["cost"], "_event": batch["_event"]}
>>> slicing = Slicing(keys={"orders": ("user",)}, state="cost long")
>>> batches = [[{"user": "ann", "cost": 3}], [{"user": "ann", "cost": 4}]]
>>> tried = try_batches(
...     spent, batches, "user string, cost long", "user string, before long, cost long", slicing
... )
>>> tried.rows[-1]
{'user': 'ann', 'before': 3, 'cost': 4}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.row_conversion import fit_rows
from penstock.pipelines.stateful.ready_function import Ready
from penstock.pipelines.stateful.slice_call import SliceFunction, call_slice, split_inputs
from penstock.pipelines.stateful.slice_options import Slicing, state_schemas
from penstock.pipelines.stateful.watermark import later, latest_time, watermark_after
from penstock.state.compaction import merge_count
from penstock.state.handle import State
from penstock.state.merge import Age, live, newest
from penstock.state.sorted_layer import SortedLayer
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT, parse_schema, with_event, without_event

Row = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch
AnySchema: TypeAlias = str | pa.Schema

#: The stamp of rows without `_event`.
_STAMP = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutResult:
    """The result of `try_batches`."""

    #: The output of each batch by topic, with `_event`; grouped by slice.
    topics: Mapping[str, tuple[pa.Table, ...]]
    #: The rows that were late in each batch.
    late: tuple[list[Row], ...]
    #: The watermark of the next batch, in microseconds.
    watermark: int | None
    #: All rows of the final state.
    state: pa.Table
    #: Whether rows came with `_event`.
    stamped: bool

    @property
    def outputs(self) -> tuple[pa.Table, ...]:
        """The main output of each batch, with `_event`; grouped by slice."""
        return next(iter(self.topics.values()))

    @property
    def rows(self) -> list[Row]:
        """All rows of the main output; without `_event` if no input row has it."""
        return self.rows_of(next(iter(self.topics)))

    def rows_of(self, topic: str) -> list[Row]:
        """All rows of one of several outputs; without `_event` if no input row has it."""
        if topic not in self.topics:
            raise InputError("topic", f"{topic!r} is not written", nearest(topic, self.topics))
        table = pa.concat_tables(self.topics[topic])
        shown: list[Row] = (table if self.stamped else table.drop_columns(EVENT)).to_pylist()
        return shown


def try_batches(
    function: Ready | SliceFunction,
    batches: Sequence[Rows | Mapping[str, Rows]],
    reads: AnySchema | Mapping[str, AnySchema],
    writes: AnySchema | Mapping[str, AnySchema] | None = None,
    slicing: Slicing | None = None,
    *,
    slices: int = 64,
    delay_s: float = 0.0,
    ttl_s: float | None = None,
) -> TryOutResult:
    """Run a function on batches in order; each continues with the state of the last.

    A ready-made function needs only batches and their columns; for your own function also give
    the columns it writes and its `Slicing`. With several inputs a batch is a dictionary of rows by
    input; with several output topics `writes` is a dictionary of columns by topic. Rows without
    `_event` all get the same time. The result has `rows` (all output rows), `outputs` and `late` by
    batch, `state` (a table) and `watermark`; for several output topics, `rows_of(topic)` and
    `topics`.

    >>> from penstock import counts, try_batches
    >>> tried = try_batches(counts(by="word"), [[{"word": "a"}], [{"word": "a"}]], "word string")
    >>> tried.rows, tried.state.to_pylist()
    ([{'word': 'a', 'n': 1}, {'word': 'a', 'n': 2}], [{'word': 'a', 'n': 2}])
    """
    try:
        schemas = _schemas(reads, slicing)
        if isinstance(function, Ready):
            slicing = function.slicing(schemas, slices=slices, delay_s=delay_s, ttl_s=ttl_s)
            writes = function.output_schema(schemas)
        if slicing is None or writes is None:
            hint = "only ready-made functions declare both"
            raise InputError("writes", "give the columns that it writes, and its slicing", hint)
        given = [
            _given(batch, schemas, f"batches[{number}]") for number, batch in enumerate(batches)
        ]
        columns = writes if isinstance(writes, Mapping) else {"output": writes}
        outputs = {topic: _parsed(each) for topic, each in columns.items()}
        trial = _Trial(function, slicing, schemas, outputs)
    except InputError as wrong:
        raise wrong.under("try_batches") from None
    for inputs in given:
        trial.run(inputs)
    return TryOutResult(
        topics={topic: tuple(tables) for topic, tables in trial.outputs.items()},
        late=tuple(trial.late),
        watermark=trial.watermark,
        state=trial.state(),
        stamped=any(_is_stamped(batch) for batch in batches),
    )


class _Trial:
    """The state of a try-out: the layers of all slices and the watermark."""

    def __init__(
        self,
        function: SliceFunction,
        slicing: Slicing,
        schemas: Mapping[str, pa.Schema],
        schemas_out: Mapping[str, pa.Schema],
    ) -> None:
        self.outputs: dict[str, list[pa.Table]] = {topic: [] for topic in schemas_out}
        self.late: list[list[Row]] = []
        self.watermark: int | None = None
        self._function, self._slicing, self._schemas = function, slicing, schemas_out
        self._key, self._values = state_schemas(slicing, schemas)
        self._layers: dict[int, list[SortedLayer]] = {}
        self._latest: dict[str, int | None] = dict.fromkeys(slicing.keys)
        self._before: int | None = None
        self._starts, self._ends = dict.fromkeys(schemas, 0), dict.fromkeys(schemas, 0)
        #: By slice: a name of its layers.
        self._tokens: dict[int, str] = {}

    def run(self, inputs: Mapping[str, pa.RecordBatch]) -> None:
        """Run one batch."""
        times = {t: latest_time(inputs[t], self._slicing.time) for t in self._slicing.keys}
        now = max((time for time in times.values() if time is not None), default=None)
        self._starts = self._ends
        self._ends = {t: offset + inputs[t].num_rows for t, offset in self._starts.items()}
        parts = split_inputs(self._slicing, inputs)
        none = {topic: rows.slice(0, 0) for topic, rows in inputs.items()}
        results: dict[str, list[pa.RecordBatch]] = {topic: [] for topic in self._schemas}
        late = []
        for number in sorted({*parts, *self._layers}):
            state = self._open(number, now)
            if number not in parts and not state.is_due():
                continue
            returned = call_slice(self._function, parts.get(number, none), state, self._schemas)
            for topic, rows in returned.items():
                results[topic].append(rows)
            late += [row for rows in state.late_rows for row in rows.to_pylist()]
            self._keep(number, state.changes())
        for topic, tables in self.outputs.items():
            schema = with_event(self._schemas[topic])
            tables.append(pa.Table.from_batches(results[topic], schema))
        self.late.append(late)
        self._latest = later(self._latest, times)
        self._before = self.watermark
        self.watermark = watermark_after(self.watermark, self._latest, self._slicing.delay_us)

    def state(self) -> pa.Table:
        """Return all rows of the state."""
        schema = pa.schema([*self._key, *self._values])
        rows = [rows for number in sorted(self._layers) for rows in self._open(number).scan()]
        return pa.Table.from_batches([batch.cast(schema) for batch in rows], schema)

    def _open(self, number: int, now: int | None = None) -> State:
        return State.open(
            self._key,
            self._values,
            self._layers.get(number, ()),
            slice=number,
            watermark=self.watermark,
            before=self._before,
            now=now,
            ttl_us=self._slicing.ttl_us,
            token=self._token(number),
            input_starts=self._starts,
            input_ends=self._ends,
        )

    def _token(self, number: int) -> str:
        token = self._tokens.setdefault(number, uuid4().hex)
        # what has expired depends on watermarks
        return token if self._slicing.ttl_us is None else f"{token}@{self.watermark}@{self._before}"

    def _keep(self, number: int, changes: SortedLayer | None) -> None:
        """Add a layer; older ones of similar size are merged."""
        layers = self._layers.get(number, [])
        if changes is not None:
            self._tokens.pop(number, None)
        if count := merge_count([len(layer) for layer in layers]):
            merged = newest([layer.chunks[0] for layer in layers[:count]], len(self._key))
            if count == len(layers):  # the oldest layer: deleted rows have nothing to hide
                mark = self.watermark
                merged = live(
                    merged, Age(ttl_us=self._slicing.ttl_us, watermark=mark, fired_up_to=mark)
                )
            layers = [*([SortedLayer([merged])] if len(merged) else []), *layers[count:]]
        self._layers[number] = layers if changes is None else [changes, *layers]


def _schemas(
    reads: AnySchema | Mapping[str, AnySchema], slicing: Slicing | None
) -> dict[str, pa.Schema]:
    """Return the columns of every input, without `_event`."""
    if isinstance(reads, Mapping):
        return {topic: _parsed(columns) for topic, columns in reads.items()}
    return {slicing.inputs[0] if slicing else "rows": _parsed(reads)}


def _parsed(columns: AnySchema) -> pa.Schema:
    return without_event(parse_schema(columns) if isinstance(columns, str) else columns)


def _given(
    batch: Rows | Mapping[str, Rows], schemas: Mapping[str, pa.Schema], where: str
) -> dict[str, pa.RecordBatch]:
    rows = batch if isinstance(batch, Mapping) else {next(iter(schemas)): batch}
    for topic in rows:
        if topic not in schemas:
            raise InputError(where, f"there is no input {topic!r}", nearest(topic, schemas))
    try:
        return {topic: _stamped(rows.get(topic, []), schemas[topic]) for topic in schemas}
    except InputError as wrong:
        raise wrong.under(where) from None


def _stamped(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    else:
        names = dict.fromkeys((*schema.names, *(name for row in rows for name in row)))
        columns = {name: [row.get(name) for row in rows] for name in names}
    if EVENT not in columns:
        columns[EVENT] = pa.repeat(pa.scalar(_STAMP, TIMESTAMP), len(rows))
    return fit_rows(columns, with_event(schema))


def _is_stamped(batch: Rows | Mapping[str, Rows]) -> bool:
    if isinstance(batch, Mapping):
        return any(map(_is_stamped, batch.values()))
    if isinstance(batch, pa.Table | pa.RecordBatch):
        return EVENT in batch.schema.names
    return any(EVENT in row for row in batch)
