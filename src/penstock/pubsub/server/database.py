"""The server's SQLite file: accounts, hashes of tokens, subscriptions and their numbers."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import InputError
from penstock.files.text import explain_os_error

FILE = "server.sqlite"
FORMAT = 1
_OWNER_ONLY = 0o600
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE accounts (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, role TEXT NOT NULL, created TEXT NOT NULL,
    account INTEGER NOT NULL REFERENCES accounts (number)
);
-- AUTOINCREMENT: a number is never used again, not even that of a deleted row
CREATE TABLE subscriptions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, content BLOB NOT NULL,
    state TEXT NOT NULL, active_from INTEGER, removed_from INTEGER,
    account INTEGER NOT NULL REFERENCES accounts (number)
);
CREATE UNIQUE INDEX live_ids ON subscriptions (account, id) WHERE state IN ('pending', 'active');
CREATE INDEX unacknowledged ON subscriptions (number) WHERE state IN ('pending', 'removing');
CREATE TABLE positions (name TEXT PRIMARY KEY, position INTEGER NOT NULL);
PRAGMA user_version = 1;
COMMIT;
"""


def open_database(directory: Path) -> sqlite3.Connection:
    """Open the file in a directory, made if it is missing; only its owner can read it."""
    path = directory / FILE
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_file(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, ValueError) as error:
        raise InputError("--dir", f"{str(path)!r}: {explain_os_error(error)}") from None
    try:
        connection.executescript(
            "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL;"
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
        )
        _check_format(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise InputError("--dir", f"{str(path)!r} cannot be used: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _make_file(path: Path) -> None:
    """Make a file that only its owner reads; SQLite gives its mode to the journals.

    A file that exists must not be opened here: closing it would release the locks that other
    connections of this process have on it, and another process could delete the log in use.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    if _read_format(connection) == 0:
        try:
            connection.executescript(_SCHEMA)
        except sqlite3.OperationalError:
            # two processes made it at the same time
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    version = _read_format(connection)
    if version != FORMAT:
        problem = f"{str(path)!r} has format {version}, this version reads {FORMAT}"
        raise InputError("--dir", problem)


def _read_format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end, durably; roll back after an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
