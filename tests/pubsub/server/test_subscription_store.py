"""Stored subscriptions: numbers, states, and what a restart submits again."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.pubsub.broker import Ack, Refusal, SubscribeRequest, UnsubscribeRequest
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.server.database import open_database, transaction
from penstock.pubsub.server.subscription_store import (
    DuplicateIdError,
    SubscriptionStore,
    TooManySubscriptionsError,
)
from penstock.pubsub.server.token_store import TokenStore


def make_store(directory: Path) -> SubscriptionStore:
    connection = open_database(directory)
    for name in ("alice", "bob"):
        TokenStore(connection).create(name, Role.BOTH)
    return SubscriptionStore(connection)


@pytest.fixture
def store(tmp_path: Path) -> SubscriptionStore:
    return make_store(tmp_path)


def state_of(store: SubscriptionStore, number: int) -> tuple[str, int | None, int | None]:
    record = next(each for each in store.read_all(1) if each.number == number)
    return record.state.value, record.active_from, record.removed_from


def test_a_subscription_goes_through_its_states(store: SubscriptionStore) -> None:
    number = store.add(1, "a", b"x > 1", 10).number
    assert state_of(store, number) == ("pending", None, None)
    assert store.unacknowledged() == [SubscribeRequest(number=number, content=b"x > 1")]
    store.apply_acks([Ack(number=number, is_active=True, publication=5)], 1)
    assert state_of(store, number) == ("active", 5, None)
    assert store.unacknowledged() == []
    store.mark_removing([number])
    assert state_of(store, number) == ("removing", 5, None)
    assert store.unacknowledged() == [UnsubscribeRequest(number=number)]
    store.apply_acks([Ack(number=number, is_active=False, publication=9)], 2)
    assert state_of(store, number) == ("removed", 5, 9)
    assert store.unacknowledged() == []
    assert store.read_position("acks") == 2


def test_the_first_ack_counts_if_a_request_was_submitted_twice(store: SubscriptionStore) -> None:
    number = store.add(1, "a", b"x", 10).number
    active = [Ack(number=number, is_active=True, publication=at) for at in (3, 8)]
    store.apply_acks(active, 2)
    assert state_of(store, number) == ("active", 3, None)
    store.mark_removing([number])
    removed = [Ack(number=number, is_active=False, publication=at) for at in (9, 12)]
    store.apply_acks(removed, 4)
    store.apply_acks([active[1]], 5)
    assert state_of(store, number) == ("removed", 3, 9)


def test_a_removal_before_the_first_ack_stays_a_removal(store: SubscriptionStore) -> None:
    number = store.add(1, "a", b"x", 10).number
    store.mark_removing([number])
    store.apply_acks([Ack(number=number, is_active=True, publication=3)], 1)
    assert state_of(store, number) == ("removing", 3, None)


def test_ids_are_unique_among_live_ones_of_an_account(store: SubscriptionStore) -> None:
    first = store.add(1, "a", b"x", 10).number
    with pytest.raises(DuplicateIdError):
        store.add(1, "a", b"x", 10)
    other = store.add(2, "a", b"x", 10).number
    store.mark_removing([first])
    again = store.add(1, "a", b"y", 10).number
    assert len({first, other, again}) == 3
    live = store.find_live(1, "a")
    assert live is not None and live.number == again
    assert store.read_owners() == {first: (1, "a"), other: (2, "a"), again: (1, "a")}


def test_an_account_has_a_limit(store: SubscriptionStore) -> None:
    store.add(1, "a", b"x", 2)
    store.add(1, "b", b"x", 2)
    with pytest.raises(TooManySubscriptionsError, match="2 of 2"):
        store.add(1, "c", b"x", 2)
    store.add(2, "c", b"x", 2)


def test_numbers_are_not_used_again_after_deletion(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    number = store.add(1, "a", b"x", 10).number
    connection = open_database(tmp_path)
    connection.execute("DELETE FROM subscriptions")
    assert store.add(1, "b", b"x", 10).number > number


def test_numbers_end_at_32_bits(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.add(1, "a", b"x", 10)
    connection = open_database(tmp_path)
    connection.execute("UPDATE sqlite_sequence SET seq = 4294967295")
    with pytest.raises(TooManySubscriptionsError, match="used up"), transaction(connection):
        SubscriptionStore(connection).add(1, "b", b"x", 10)
    assert [record.id for record in store.read_all(1)] == ["a"]


def test_a_refused_subscription_is_removed(store: SubscriptionStore) -> None:
    number = store.add(1, "a", b"x", 10).number
    store.apply_refusals(
        [Refusal(number=number, problem="p"), Refusal(number=None, problem="q")], 2
    )
    assert state_of(store, number) == ("removed", None, None)
    assert store.read_position("refusals") == 2


class StoreMachine(RuleBasedStateMachine):
    """Compares the store with a model while an engine gets and confirms requests late."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile  # noqa: PLC0415

        self.directory = tempfile.TemporaryDirectory()
        self.connection = open_database(Path(self.directory.name))
        TokenStore(self.connection).create("alice", Role.BOTH)
        self.store = SubscriptionStore(self.connection)
        self.live: dict[str, int] = {}
        self.used: set[int] = set()
        self.requests: list[tuple[int, bool]] = []
        self.confirmed: set[tuple[int, bool]] = set()
        self.position = 0

    @rule(id=st.sampled_from("abc"))
    def subscribe(self, id: str) -> None:
        if id in self.live:
            with pytest.raises(DuplicateIdError):
                self.store.add(1, id, b"x", 10)
            return
        number = self.store.add(1, id, b"x", 10).number
        assert number not in self.used
        self.used.add(number)
        self.live[id] = number
        self.requests.append((number, True))

    @rule(id=st.sampled_from("abc"))
    def unsubscribe(self, id: str) -> None:
        record = self.store.find_live(1, id)
        assert (record.number if record else None) == self.live.get(id)
        if record is not None:
            self.store.mark_removing([record.number])
            del self.live[id]
            self.requests.append((record.number, False))

    @rule(count=st.integers(1, 3))
    def confirm(self, count: int) -> None:
        taken, self.requests = self.requests[:count], self.requests[count:]
        acks = [Ack(number=n, is_active=is_active, publication=7) for n, is_active in taken]
        self.position += len(acks)
        self.store.apply_acks(acks, self.position)
        self.confirmed.update(taken)

    @rule()
    def restart(self) -> None:
        self.connection.close()
        self.connection = open_database(Path(self.directory.name))
        self.store = SubscriptionStore(self.connection)
        assert self.store.read_position("acks") == self.position

    @invariant()
    def unconfirmed_changes_are_those_without_an_ack(self) -> None:
        live = set(self.live.values())
        expected = {
            (number, number in live)
            for number in self.used
            if (number, number in live) not in self.confirmed
        }
        found = {
            (each.number, isinstance(each, SubscribeRequest))
            for each in self.store.unacknowledged()
        }
        assert found == expected

    def teardown(self) -> None:
        self.connection.close()
        self.directory.cleanup()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=15, stateful_step_count=20)
