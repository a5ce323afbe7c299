"""Serves the dashboard: picks names and a token, opens the browser, ends with Ctrl-C."""

import ipaddress
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from penstock.dashboard.access import AccessRules
from penstock.dashboard.application import make_application
from penstock.dashboard.run_library import RunLibrary
from penstock.errors import InputError
from penstock.extras import import_optional

DEFAULT_PORT = 8750
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
#: The longest request line and headers that the server reads.
_MAX_HEAD_BYTES = 16_384


class DashboardServer(NamedTuple):
    """A server that is ready to run."""

    server: Any
    listener: socket.socket
    #: Where it is, with the token behind the hash, which browsers do not send.
    address: str

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self.server.run(sockets=[self.listener])


def prepare_dashboard(
    directory: Path,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    token: str = "",
    names: Sequence[str] = (),
) -> DashboardServer:
    """Listen at an address for pages about the runs below a directory."""
    uvicorn = import_optional("uvicorn", "the dashboard")
    if not directory.is_dir():
        hint = "give a run directory, or a directory with runs such as runs/"
        raise InputError("RUN", "there is no such directory", hint, str(directory))
    rules = make_rules(host, token, names)
    config = uvicorn.Config(
        make_application(RunLibrary(directory), rules),
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_graceful_shutdown=2,
        http="h11",
    )
    listener = _listen(host, port)
    shown = "127.0.0.1" if not rules.is_open or host in ("0.0.0.0", "::") else host
    place = f"[{shown}]" if ":" in shown else shown
    address = f"http://{place}:{listener.getsockname()[1]}/#token={rules.token}"
    return DashboardServer(uvicorn.Server(config), listener, address)


def serve_dashboard(prepared: DashboardServer, *, opens_browser: bool = False) -> None:
    """Print the address and serve until Ctrl-C."""
    print(f"dashboard: {prepared.address}", file=sys.stderr)
    print("the token allows to change a running loop; Ctrl-C ends", file=sys.stderr, flush=True)
    if opens_browser:
        threading.Timer(0.5, webbrowser.open, [prepared.address]).start()
    prepared.run()


def make_rules(host: str, token: str = "", names: Sequence[str] = ()) -> AccessRules:
    """Return what a server that listens at an address accepts.

    >>> make_rules("127.0.0.1").is_open, make_rules("0.0.0.0").is_open
    (False, True)
    """
    is_open = not is_loopback(host)
    hosts = {*_LOCAL_NAMES, *names, *([host, socket.gethostname()] if is_open else [])}
    if token and len(token) < 16:
        raise InputError(
            "--token", "must have at least 16 characters", "leave it out for a random one"
        )
    return AccessRules(
        token=token or secrets.token_urlsafe(24), hosts=frozenset(hosts), is_open=is_open
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "choose another one with --port N; --port 0 takes a free one"
        raise InputError("--port", f"cannot listen at {host} port {port}: {reason}", hint) from None
    return listener
