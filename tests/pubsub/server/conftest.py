"""A server on a real socket over a broker by brute force, with clients that have tokens."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.pubsub.server.oracle_broker import OracleBroker

from penstock.pubsub.server.app import make_app
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.server.database import open_database
from penstock.pubsub.server.http_server import HttpServer, ServerThread
from penstock.pubsub.server.limits import ServerLimits
from penstock.pubsub.server.token_store import TokenStore
from penstock.pubsub.spaces.space import Space, parse_space

PLAIN = parse_space(
    {"format": 1, "scheme": "plain", "attributes": {"price": {}, "symbol": {}, "data.price": {}}}
)


def make_token(directory: Path, name: str, role: Role = Role.BOTH) -> str:
    """Return a new token of an account."""
    connection = open_database(directory)
    try:
        return str(TokenStore(connection).create(name, role))
    finally:
        connection.close()


class Rig:
    """A server, its broker, and clients by name."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self._stack, self.directory = stack, directory
        self.broker = OracleBroker(PLAIN)
        self.url = ""
        #: What the engine tells about itself.
        self.engine_status: dict[str, Any] = {}
        self._server: ServerThread | None = None

    def start(self, space: Space = PLAIN, port: int = 0, **limits: float) -> "Rig":
        """Serve a new broker."""
        if space is not PLAIN:
            self.broker = OracleBroker(space)
        app = make_app(self.broker, self.directory, ServerLimits.parse(limits), self._describe)
        self._server = ServerThread(HttpServer(app, port=port))
        self._server.__enter__()
        self.url = self._server.server.url
        return self

    def _describe(self) -> dict[str, Any]:
        return self.engine_status

    def stop(self) -> None:
        """End the server; the broker and the directory stay."""
        if self._server is not None:
            self._server.__exit__(None, None, None)
            self._server = None

    def client(self, name: str = "alice", role: Role = Role.BOTH) -> httpx.Client:
        """Return a client with a new token."""
        token = make_token(self.directory, name, role)
        return self.client_with(token)

    def client_with(self, token: str | None) -> httpx.Client:
        """Return a client with this token, or without one."""
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=20)
        return self._stack.enter_context(client)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A rig that is not started yet."""
    with ExitStack() as stack:
        made = Rig(stack, tmp_path / "service")
        yield made
        stack.close()
        made.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A started rig for tests whose requests are all refused."""
    with ExitStack() as stack:
        made = Rig(stack, tmp_path_factory.mktemp("shared") / "service")
        made.start()
        yield made
        stack.close()
        made.stop()
