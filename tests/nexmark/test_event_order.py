"""Rows of one kind and events of the stream, counted one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.nexmark.event_order import FIRST_ID, KINDS, PERSONS, EventKind
from penstock.topics.schema import parse_schema

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def name_of(event_id: int) -> str:
    place = event_id % 50
    return "persons" if place == 0 else "auctions" if place <= 3 else "bids"


def ids_by_hand(kind: EventKind, first: int, end: int) -> list[int]:
    return [FIRST_ID + n for n in range(first, end) if name_of(FIRST_ID + n) == kind.name]


@kinds
def test_rows_are_the_events_of_their_kind_in_order(kind: EventKind) -> None:
    every = ids_by_hand(kind, 0, 1000)
    assert kind.ids(0, len(every)).tolist() == every
    assert kind.ids(7, 12).tolist() == every[7:12]


@kinds
@given(st.integers(0, 10**6), st.integers(0, 120))
def test_events_hold_their_rows(kind: EventKind, first: int, events: int) -> None:
    rows = kind.rows_within(first, first + events)
    assert kind.ids(*rows).tolist() == ids_by_hand(kind, first, first + events)


def test_a_million_events() -> None:
    held = {name: kind.rows_within(0, 1_000_000) for name, kind in KINDS.items()}
    assert held == {"persons": (0, 20_000), "auctions": (0, 60_000), "bids": (0, 920_000)}
    assert PERSONS.ids(0, 20_000)[[0, -1]].tolist() == [50, 1_000_000]


@kinds
def test_columns_can_be_those_of_a_topic(kind: EventKind) -> None:
    assert "dateTime" in parse_schema(kind.schema).names
