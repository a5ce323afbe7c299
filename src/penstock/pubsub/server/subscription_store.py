"""Stored subscriptions: who owns which number, and how far the engine has come with it."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.pubsub.broker import Ack, Refusal, Request, SubscribeRequest, UnsubscribeRequest

#: Numbers are 32 bits wide in the lists of matches.
MAX_NUMBER = 2**32 - 1
#: Removed subscriptions that a list shows.
MAX_SHOWN_REMOVED = 100
_COLUMNS = "number, account, id, content, state, active_from, removed_from"


class SubscriptionState(StrEnum):
    """How far a subscription is."""

    #: Stored; the engine has not confirmed it yet.
    PENDING = "pending"
    ACTIVE = "active"
    #: Its removal is stored; the engine has not confirmed it yet.
    REMOVING = "removing"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRecord:
    """A subscription of an account."""

    number: int
    account: int
    id: str
    #: As in `SubscribeRequest`.
    content: bytes
    state: SubscriptionState
    #: The first publication that it can match; None until the engine confirms it.
    active_from: int | None = None
    #: The first publication that it can no longer match.
    removed_from: int | None = None


class DuplicateIdError(Exception):
    """The account has a live subscription with this id."""


class TooManySubscriptionsError(Exception):
    """The account, or the space of numbers, is full."""


class SubscriptionStore:
    """Subscriptions in the server's database; changes belong into a `transaction`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, account: int, id: str, content: bytes, max_live: int) -> SubscriptionRecord:
        """Store a subscription under a new number."""
        live = self._connection.execute(
            "SELECT count(*), coalesce(max(id = ?), 0) FROM subscriptions"
            " WHERE account = ? AND state IN ('pending', 'active')",
            (id, account),
        ).fetchone()
        if live[1]:
            raise DuplicateIdError(id)
        if live[0] >= max_live:
            raise TooManySubscriptionsError(f"the account has {live[0]} of {max_live}")
        row = (id, content, SubscriptionState.PENDING.value, account)
        statement = "INSERT INTO subscriptions (id, content, state, account) VALUES (?, ?, ?, ?)"
        number = self._connection.execute(statement, row).lastrowid
        assert number is not None
        if number > MAX_NUMBER:
            raise TooManySubscriptionsError("all numbers of this service are used up")
        state = SubscriptionState.PENDING
        return SubscriptionRecord(
            number=number, account=account, id=id, content=content, state=state
        )

    def find_live(self, account: int, id: str) -> SubscriptionRecord | None:
        """Return the live subscription of an account."""
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM subscriptions"
            " WHERE account = ? AND id = ? AND state IN ('pending', 'active')",
            (account, id),
        ).fetchone()
        return _record(row) if row else None

    def mark_removing(self, numbers: Sequence[int]) -> None:
        """Note that removals are asked for."""
        self._connection.executemany(
            "UPDATE subscriptions SET state = 'removing'"
            " WHERE number = ? AND state IN ('pending', 'active')",
            [(number,) for number in numbers],
        )

    def apply_acks(self, acks: Sequence[Ack], position: int) -> None:
        """Note what the engine has confirmed, and the position behind it.

        An engine confirms a request twice if it got it twice; the first time counts.
        """
        run = self._connection.execute
        for ack in acks:
            if ack.is_active:
                # a subscription whose removal is on its way stays `removing`
                run(
                    "UPDATE subscriptions SET active_from = ?,"
                    " state = iif(state = 'pending', 'active', state)"
                    " WHERE number = ? AND active_from IS NULL",
                    (ack.publication, ack.number),
                )
            else:
                run(
                    "UPDATE subscriptions SET removed_from = ?, state = 'removed'"
                    " WHERE number = ? AND state = 'removing'",
                    (ack.publication, ack.number),
                )
        self.save_position("acks", position)

    def apply_refusals(self, refusals: Sequence[Refusal], position: int) -> None:
        """Note what the engine has refused: such a subscription was never active."""
        self._connection.executemany(
            "UPDATE subscriptions SET state = 'removed' WHERE number = ?",
            [(each.number,) for each in refusals if each.number is not None],
        )
        self.save_position("refusals", position)

    def save_position(self, name: str, position: int) -> None:
        """Note how far the server has read something."""
        self._connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", (name, position))

    def read_position(self, name: str, default: int = 0) -> int:
        """Return a noted position."""
        query = "SELECT position FROM positions WHERE name = ?"
        row = self._connection.execute(query, (name,)).fetchone()
        return int(row[0]) if row else default

    def read_all(self, account: int) -> list[SubscriptionRecord]:
        """Return live subscriptions of an account, and the latest removed ones."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM subscriptions WHERE account = ? AND state != 'removed'"
            f" UNION ALL SELECT * FROM (SELECT {_COLUMNS} FROM subscriptions"
            " WHERE account = ? AND state = 'removed' ORDER BY number DESC LIMIT ?)"
            " ORDER BY number",
            (account, account, MAX_SHOWN_REMOVED),
        )
        return [_record(row) for row in rows]

    def count_states(self) -> dict[str, int]:
        """Return the number of subscriptions in each state."""
        rows = self._connection.execute("SELECT state, count(*) FROM subscriptions GROUP BY state")
        counts = dict(rows.fetchall())
        return {state.value: counts.get(state.value, 0) for state in SubscriptionState}

    def read_owners(self) -> dict[int, tuple[int, str]]:
        """Return account and id by number, also of removed ones: old notices mention them."""
        rows = self._connection.execute("SELECT number, account, id FROM subscriptions")
        return {number: (account, id) for number, account, id in rows}

    def unacknowledged(self) -> list[Request]:
        """Return requests that the engine has not confirmed, in the order of numbers.

        A crash does not show which of them were submitted, so all are submitted again.
        """
        rows = self._connection.execute(
            "SELECT number, content, state FROM subscriptions"
            " WHERE state IN ('pending', 'removing') ORDER BY number"
        )
        return [
            SubscribeRequest(number=number, content=content)
            if state == SubscriptionState.PENDING
            else UnsubscribeRequest(number=number)
            for number, content, state in rows
        ]


def _record(row: tuple[int, int, str, bytes, str, int | None, int | None]) -> SubscriptionRecord:
    number, account, id, content, state, active_from, removed_from = row
    return SubscriptionRecord(
        number=number,
        account=account,
        id=id,
        content=content,
        state=SubscriptionState(state),
        active_from=active_from,
        removed_from=removed_from,
    )
