"""Stored tokens: created by the command line, looked up by every request."""

import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.errors import InputError
from penstock.pubsub.server.credentials import AccessToken, Account, Role, make_token, parse_token
from penstock.pubsub.server.database import transaction

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """What is known about a token; its secret is not."""

    id: str
    name: str
    role: Role
    created: str


class TokenStore:
    """Tokens in the server's database; other processes may add some at any time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self, name: str, role: Role) -> AccessToken:
        """Add a token for an account; an account may have several, to replace one by another."""
        check_account_name(name)
        token = make_token()
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with transaction(self._connection):
            add = self._connection.execute
            add("INSERT OR IGNORE INTO accounts (name) VALUES (?)", (name,))
            account = add("SELECT number FROM accounts WHERE name = ?", (name,)).fetchone()[0]
            row = (token.id, token.hash, role.value, created, account)
            columns = "id, hash, role, created, account"
            add(f"INSERT INTO tokens ({columns}) VALUES (?, ?, ?, ?, ?)", row)
        return token

    def authenticate(self, text: str) -> Account | None:
        """Return the account of a valid token."""
        token = parse_token(text)
        if token is None:
            return None
        row = self._connection.execute(
            "SELECT hash, role, number, name FROM tokens JOIN accounts ON number = account"
            " WHERE id = ?",
            (token.id,),
        ).fetchone()
        if not token.is_proven_by(row[0] if row else None):
            return None
        return Account(number=row[2], name=row[3], role=Role(row[1]))

    def read_all(self) -> list[TokenRecord]:
        """Return all tokens, in the order of names."""
        rows = self._connection.execute(
            "SELECT id, name, role, created FROM tokens JOIN accounts ON number = account"
            " ORDER BY name, created, id"
        )
        return [TokenRecord(id=r[0], name=r[1], role=Role(r[2]), created=r[3]) for r in rows]

    def revoke(self, name: str) -> int:
        """Delete all tokens of an account and return how many there were.

        Its subscriptions stay: a new token for the same name finds them again.
        """
        with transaction(self._connection):
            deleted = self._connection.execute(
                "DELETE FROM tokens WHERE account IN (SELECT number FROM accounts WHERE name = ?)",
                (name,),
            )
            return deleted.rowcount


def check_account_name(name: str) -> None:
    """Refuse names that would be hard to read in a list."""
    if not _NAME.fullmatch(name):
        hint = "up to 64 letters, digits and . _ @ -, beginning with a letter or a digit"
        raise InputError("--name", f"is not allowed: {name!r}", hint)
