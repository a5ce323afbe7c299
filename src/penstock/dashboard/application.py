"""The dashboard as a web application: pages, JSON of runs, live updates, requests of people."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from penstock.control.requests import ControlRequest
from penstock.dashboard.access import MAX_BODY_BYTES, AccessCheck, AccessRules, Application
from penstock.dashboard.run_library import RunLibrary
from penstock.dashboard.run_reader import RunReader
from penstock.dashboard.run_views import MAX_COMPARED, RunViews
from penstock.errors import InputError, PenstockError
from penstock.extras import import_optional
from penstock.runs.control_file import append_request
from penstock.runs.journal_lines import to_line

#: Pages that are updated at once, and seconds between two looks at a run.
MAX_STREAMS, POLL_S = 64, 0.5
#: A long journal is read for so long at a time, and other requests get as long in between.
READ_S = 0.05
_MEDIA = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


def make_application(library: RunLibrary, rules: AccessRules) -> Application:
    """Return the ASGI application for the runs of a library."""
    applications = import_optional("starlette.applications", "the dashboard")
    routing = import_optional("starlette.routing", "the dashboard")
    import_optional("sse_starlette", "the dashboard")
    views = RunViews(library)
    pages = DashboardPages(library)
    routes = [
        routing.Route("/", pages.page),
        routing.Route("/assets/{name}", pages.asset),
        routing.Route("/api/runs", pages.answer(views.runs)),
        routing.Route("/api/overview", pages.answer(views.overview)),
        routing.Route("/api/curves", pages.answer(views.curves)),
        routing.Route("/api/tick", pages.answer(views.tick)),
        routing.Route("/api/decisions", pages.answer(views.decisions)),
        routing.Route("/api/decision", pages.answer(views.decision)),
        routing.Route("/api/health", pages.answer(views.health)),
        routing.Route("/api/compare", pages.answer(views.compare)),
        routing.Route("/api/replay", pages.answer(views.replay)),
        routing.Route("/api/events", pages.events),
        routing.Route("/api/control", pages.control, methods=["POST"]),
    ]
    application: Application = applications.Starlette(routes=routes)
    return AccessCheck(application, rules)


class DashboardPages:
    """The answers of the dashboard."""

    def __init__(self, library: RunLibrary) -> None:
        self._library = library
        self._streams = 0
        self._responses = import_optional("starlette.responses", "the dashboard")
        self._sse = import_optional("sse_starlette", "the dashboard")

    # --- files

    async def page(self, _request: Any) -> Any:
        """Return the page."""
        return self._file("index.html")

    async def asset(self, request: Any) -> Any:
        """Return a file of the package."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Any:
        content = read_assets().get(name)
        if content is None:
            return self._responses.PlainTextResponse("there is no such file", 404)
        media = _MEDIA[name[name.rindex(".") :]]
        headers = {"cache-control": "no-cache"}
        return self._responses.Response(content, media_type=media, headers=headers)

    # --- data and errors as JSON

    def answer(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a handler that answers with JSON, or with an error in words."""

        async def handle(request: Any) -> Any:
            try:
                data = await asyncio.to_thread(function, request.query_params)
            except InputError as error:
                return self._refuse(error)
            text = to_line(data)  # a damaged journal may hold what JSON cannot
            headers = {"cache-control": "no-store"}
            return self._responses.Response(text, media_type="application/json", headers=headers)

        return handle

    def _refuse(self, error: PenstockError, status: int = 400) -> Any:
        return self._responses.JSONResponse({"error": str(error).partition("\n")[0]}, status)

    # --- live updates and requests

    async def events(self, request: Any) -> Any:
        """Send an event whenever one of the runs has changed."""
        try:
            readers = {
                name: self._library.reader(name)
                for name in request.query_params.getlist("run")[:MAX_COMPARED]
            }
        except InputError as error:
            return self._refuse(error)
        if self._streams >= MAX_STREAMS:
            return self._responses.PlainTextResponse("too many pages are open", 503)
        return self._sse.EventSourceResponse(self._updates(request, readers), ping=15)

    async def _updates(
        self, request: Any, readers: Mapping[str, RunReader]
    ) -> AsyncIterator[dict[str, str]]:
        sent: dict[str, Any] = {}
        self._streams += 1
        try:
            while not await request.is_disconnected():
                for name, reader in readers.items():
                    await asyncio.to_thread(reader.update, READ_S)
                    facts = await asyncio.to_thread(reader.facts)
                    if sent.get(name) != facts:
                        sent[name] = facts
                        yield {"event": "run", "data": json.dumps({"run": name, **facts})}
                is_behind = any(not reader.is_complete for reader in readers.values())
                await asyncio.sleep(READ_S if is_behind else POLL_S)
        finally:
            self._streams -= 1

    async def control(self, request: Any) -> Any:
        """Pass the request of a person on to the running loop."""
        body = await request.body()
        try:
            if len(body) > MAX_BODY_BYTES:
                raise InputError("", "the request is too large")
            reader, order = self._read_control(body)
        except InputError as error:
            return self._refuse(error)
        if not reader.is_live:
            problem = "is not running: nobody would read the request"
            return self._refuse(InputError("run", problem), 409)
        await asyncio.to_thread(append_request, reader.directory, order)
        return self._responses.JSONResponse({"accepted": order.to_json()}, 202)

    def _read_control(self, body: bytes) -> tuple[RunReader, ControlRequest]:
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            raise InputError("", "the request is not JSON") from None
        if not isinstance(data, dict) or not isinstance(data.get("run"), str):
            raise InputError("run", "missing")
        reader = self._library.reader(data.pop("run"))
        if reader.spec.get("controller") == "none":
            raise InputError("run", "its replicas decide themselves: no loop reads the request")
        order = ControlRequest.from_json({**data, "at": round(time.time(), 3)})
        with reader.open():
            operators = reader.columns_now().operators
        if order.operator and order.operator not in operators:
            raise InputError("operator", f"there is no operator {order.operator!r}")
        return reader, order


@cache
def read_assets() -> Mapping[str, bytes]:
    """Return the files of the page by name; nothing else is ever served."""
    folder = files("penstock.dashboard") / "assets"
    return {
        item.name: item.read_bytes()
        for item in folder.iterdir()
        if any(item.name.endswith(ending) for ending in _MEDIA)
    }
