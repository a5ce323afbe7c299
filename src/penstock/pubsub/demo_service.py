"""The service of the demo: a server in a thread, an account, and clients for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.control.registry import host_policy
from penstock.pipelines.host_declaration import Hosts
from penstock.pubsub.client import Client
from penstock.pubsub.demo import demo_space
from penstock.pubsub.pipeline import PubSubOptions
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.server.database import open_database
from penstock.pubsub.server.http_server import ServerThread
from penstock.pubsub.server.local_service import open_local_server
from penstock.pubsub.server.service_directory import declare_space
from penstock.pubsub.server.spark_service import open_spark_server
from penstock.pubsub.server.token_store import TokenStore

#: Fewer slices than usual: every batch calls a function for each of them, and ticks cost little
#: beside the calls. A host has a small part of a core, emulated by waiting, so that some hosts fit
#: on one machine and ticks fill them.
OPTIONS = PubSubOptions(
    access_slices=2,
    match_slices=4,
    exit_slices=2,
    max_replicas=4,
    hosts=Hosts(start=1, most=4, share=0.1),
)
RUN_OPTIONS = (
    *("--batch", "1", "--interval", "2"),
    *("--policy", host_policy(), "--param", "hold_s=4", "--param", "grace_s=6"),
)


@dataclass(frozen=True, slots=True)
class DemoService:
    """A running service and a token for it."""

    url: str
    token: str

    @property
    def page(self) -> str:
        """The page with its token; browsers do not send what is behind #."""
        return f"{self.url}/#token={self.token}"

    def connect(self) -> Client:
        """Return a new client."""
        return Client(self.url, self.token)


@contextmanager
def open_demo_service(directory: Path, *, is_local: bool) -> Iterator[DemoService]:
    """Start the server and its engine; end both afterwards."""
    with declare_space(directory, demo_space()) as space:
        connection = open_database(directory)
        token = str(TokenStore(connection).create("demo", Role.BOTH))
        connection.close()
        opened = (
            open_local_server(space, directory)
            if is_local
            else open_spark_server(space, directory, options=OPTIONS, run_options=RUN_OPTIONS)
        )
        with opened as server, ServerThread(server):
            yield DemoService(server.url, token)
