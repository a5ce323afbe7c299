"""Runs the app on a socket: in the main thread for a command, or in another thread."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette

from penstock.errors import InputError

LOOPBACK = "127.0.0.1"
#: Open connections; more are answered with 503.
MAX_CONNECTIONS = 2000
#: How long requests may take to finish at the end.
_GRACE_S = 10
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HttpServer(uvicorn.Server):
    """Serves one app; ends its streams before it waits for requests to finish."""

    def __init__(self, app: Starlette, host: str = LOOPBACK, port: int = 0) -> None:
        self._socket = _bind(host, port)
        self._app = app
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="on",
                ws="none",
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )

    @property
    def url(self) -> str:
        """The address to which clients connect."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}"

    def serve_forever(self) -> None:
        """Serve until the process gets SIGINT or SIGTERM."""
        # this class ends streams itself, earlier and with a last event
        AppStatus.enable_automatic_graceful_drain = False
        self.run(sockets=[self._socket])
        if not self.started:
            raise InputError("serve", "the service could not start; see the messages above")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, and not the process: it still has things to close."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        replaced = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in replaced.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, finish requests, then end the service."""
        if service := getattr(self._app.state, "service", None):
            service.feed.end_all("shutdown")
        await super().shutdown(sockets)


class ServerThread:
    """Runs a server beside the caller; `with ServerThread(server):`."""

    def __init__(self, server: HttpServer, timeout_s: float = 20.0) -> None:
        self.server, self._timeout_s = server, timeout_s
        self._thread = threading.Thread(target=server.serve_forever, name="server", daemon=True)

    def __enter__(self) -> "ServerThread":
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(self._timeout_s / 0.01)):
            if self.server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self.server.started:
            raise InputError("serve", "the service did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.should_exit = True
        self._thread.join(self._timeout_s)


def _bind(host: str, port: int) -> socket.socket:
    """Bind before anything starts, so that a port in use is a message and not a traceback."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:
        raise InputError("--host", f"{host!r} is no address: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        listener.close()
        problem = getattr(error, "strerror", None) or str(error)
        hint = "choose another one, or 0 for any free port"
        raise InputError("--port", f"{port} cannot be used: {problem}", hint) from None
    listener.set_inheritable(False)
    return listener
