"""How an operator's state is divided into slices, and its event-time settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.stateful.columns import Names, column_of, micros_of, names_of, time_of
from penstock.topics.ddl import type_text
from penstock.topics.schema import EVENT, first_difference, parse_schema, with_event

_MAX_SLICES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicing:
    """Options of a sliced operator: keys, slices, event time, and time to live.

    >>> Slicing(keys={"clicks": ("user",)}, state="n long, last timestamp").slices
    64
    """

    #: The key columns of each input; without any, all rows are in slice 0.
    keys: Mapping[str, tuple[str, ...]]
    #: Inputs whose rows go to every slice.
    broadcast: tuple[str, ...] = ()
    #: The number of slices; fixed for the lifetime of the state.
    slices: int = 64
    #: The column with the time of an event, in every input.
    time: str = EVENT
    #: How far a row may be behind the newest one before it is late.
    delay_s: float = 0.0
    #: Time to live of state after its last put, in event time.
    ttl_s: float | None = None
    #: The columns stored for a key: "n long, last timestamp".
    state: str
    #: Columns that distinguish several rows of one key, such as the start of a window.
    state_key: str = ""
    #: The topic for late rows; without one they are only counted.
    late_to: str | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.slices, int) and not isinstance(self.slices, bool)
        if not whole or not 1 <= self.slices <= _MAX_SLICES:
            problem = f"must be a whole number from 1 to {_MAX_SLICES}, got {self.slices!r}"
            raise InputError("slices", problem)
        _ = self.delay_us, self.ttl_us  # validate both

    @property
    def delay_us(self) -> int:
        """The delay in microseconds."""
        return micros_of("delay_s", self.delay_s, zero=True)

    @property
    def ttl_us(self) -> int | None:
        """The time to live in microseconds."""
        return None if self.ttl_s is None else micros_of("ttl_s", self.ttl_s)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs, keyed and broadcast."""
        return (*self.keys, *self.broadcast)


def keys_of(
    key: Names | Mapping[str, Names], reads: Sequence[str], broadcast: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the key columns of each input that is not broadcast.

    >>> keys_of("user", ["clicks"]), keys_of({"bids": "bidder", "people": "id"}, ["bids", "people"])
    ({'clicks': ('user',)}, {'bids': ('bidder',), 'people': ('id',)})
    """
    keyed = [topic for topic in reads if topic not in broadcast]
    for topic in broadcast:
        if topic not in reads:
            raise InputError("broadcast", f"{topic!r} is not read", nearest(topic, reads))
    if not keyed:
        raise InputError("broadcast", "must leave an input that has a key")
    if not isinstance(key, Mapping):
        return dict.fromkeys(keyed, names_of("key", key))
    for topic in key:
        if topic not in keyed:
            raise InputError("key", f"{topic!r} is not an input with a key", nearest(topic, keyed))
    for topic in keyed:
        if topic not in key:
            raise InputError(
                "key", f"says nothing about {topic!r}", "give it a key or broadcast it"
            )
    return {topic: names_of("key", key[topic]) for topic in keyed}


def state_schemas(
    slicing: Slicing, schemas: Mapping[str, pa.Schema]
) -> tuple[pa.Schema, pa.Schema]:
    """Return the key and value columns of a state; `InputError` if the options do not fit.

    Keys have the columns of the first input that has a key, and those of `state_key`; `schemas`
    are those of the inputs, with `_event` or without.
    """
    _check_inputs(slicing, tuple(schemas))
    stamped = {topic: with_event(schema) for topic, schema in schemas.items()}
    for topic in slicing.keys:
        time_of(stamped[topic], slicing.time)
    (_, own), *others = [
        (topic, _key(stamped[topic], slicing.keys[topic])) for topic in slicing.keys
    ]
    for topic, columns in others:
        _check_alike(own, topic, columns)
    if slicing.late_to is not None:
        _check_late(slicing, stamped)
    key = [*own, *_parsed("state_key", slicing.state_key)]
    if not key:
        raise InputError("key", "must name a column")
    values = _parsed("state", slicing.state)
    names = [column.name for column in (*key, *values)]
    for name in names:
        if names.count(name) > 1:
            problem = f"column {name!r} is there twice, as a key or as a value"
            raise InputError("state", problem, "the columns of the key belong to the state anyhow")
    return pa.schema(key), pa.schema(values)


def _check_inputs(slicing: Slicing, reads: Sequence[str]) -> None:
    for topic in slicing.inputs:
        if topic not in reads:
            raise InputError("key", f"{topic!r} is not read", nearest(topic, reads))
    for topic in reads:
        if topic not in slicing.inputs:
            raise InputError(
                "key", f"says nothing about {topic!r}", "give it a key or broadcast it"
            )


def _key(schema: pa.Schema, names: Sequence[str]) -> list[pa.Field]:
    columns = []
    for name in names:
        kind = column_of(schema, name, "key").type
        if pa.types.is_nested(kind):
            problem = f"column {name!r} is {type_text(kind)}, which cannot be a key"
            raise InputError("key", problem, "take a column of plain values, such as a number")
        columns.append(pa.field(name, kind))
    return columns


def _check_alike(own: Sequence[pa.Field], topic: str, columns: Sequence[pa.Field]) -> None:
    kinds, others = ([type_text(column.type) for column in each] for each in (own, columns))
    if kinds != others:
        problem = f"{topic!r} has {', '.join(others)}, but the first input {', '.join(kinds)}"
        raise InputError("key", problem, "equal keys must have equal types to meet in a slice")


def _check_late(slicing: Slicing, schemas: Mapping[str, pa.Schema]) -> None:
    first, *others = [schemas[topic] for topic in slicing.keys]
    for other in others:
        if difference := first_difference(first, other):
            problem = f"one topic cannot take rows of inputs that differ: {difference}"
            raise InputError("late_to", problem, "leave it out: late rows are counted")


def _parsed(name: str, text: str) -> list[pa.Field]:
    if not text:
        return []
    try:
        return list(parse_schema(text))
    except InputError as wrong:
        raise InputError(name, wrong.problem, wrong.hint) from None
