"""A whole service in one process, without Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.pubsub.local_broker import LocalBroker
from penstock.pubsub.server.app import make_app
from penstock.pubsub.server.http_server import LOOPBACK, HttpServer
from penstock.pubsub.server.limits import ServerLimits
from penstock.pubsub.server.service_directory import LOCAL, check_engine
from penstock.pubsub.spaces.space import Space


@contextmanager
def open_local_server(
    space: Space,
    directory: Path,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    limits: ServerLimits | None = None,
) -> Iterator[HttpServer]:
    """Yield a server that is ready to serve."""
    check_engine(directory, LOCAL)
    with LocalBroker(space, directory / LOCAL) as broker:
        yield HttpServer(make_app(broker, directory, limits, _describe_engine), host, port)


def _describe_engine() -> dict[str, Any]:
    return {"kind": "local", "state": "running", "hosts": [], "operators": []}
