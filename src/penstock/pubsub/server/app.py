"""The Starlette app: routes, answers to mistakes, headers, start and end of the service."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.pubsub.broker import Broker
from penstock.pubsub.server.information_routes import (
    PAGE_FILES,
    get_openapi,
    get_page,
    get_space,
    get_status,
)
from penstock.pubsub.server.limits import ServerLimits
from penstock.pubsub.server.notification_routes import get_notifications
from penstock.pubsub.server.problem import ProblemError
from penstock.pubsub.server.publication_routes import post_publications
from penstock.pubsub.server.service import EngineStatus, Service
from penstock.pubsub.server.subscription_routes import (
    delete_subscription,
    get_subscriptions,
    post_subscription,
)

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
#: Answers of the API are for one account and one moment.
_API_HEADERS = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'"}
_log = logging.getLogger(__name__)


def make_routes() -> list[Route]:
    """Return all routes."""
    return [
        Route("/publications", post_publications, methods=["POST"]),
        Route("/subscriptions", post_subscription, methods=["POST"]),
        Route("/subscriptions", get_subscriptions, methods=["GET"]),
        Route("/subscriptions/{id}", delete_subscription, methods=["DELETE"]),
        Route("/notifications", get_notifications, methods=["GET"]),
        Route("/space", get_space, methods=["GET"]),
        Route("/status", get_status, methods=["GET"]),
        Route("/openapi.json", get_openapi, methods=["GET"]),
        *(Route(path, get_page, methods=["GET"]) for path in PAGE_FILES),
    ]


def make_app(
    broker: Broker,
    directory: Path,
    limits: ServerLimits | None = None,
    engine_status: EngineStatus = dict,
) -> Starlette:
    """Return the app of a broker; tokens and subscriptions are stored in the directory."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service = Service(broker, directory, limits or ServerLimits(), engine_status)
        await service.start()
        app.state.service = service
        try:
            yield
        finally:
            await service.stop()

    return Starlette(
        routes=make_routes(),
        middleware=[Middleware(HeaderMiddleware)],
        exception_handlers={
            ProblemError: _answer_problem,
            HTTPException: _answer_http_error,
            ClientDisconnect: _answer_disconnect,
            Exception: _answer_bug,
        },
        lifespan=lifespan,
    )


class HeaderMiddleware:
    """Adds the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**_HEADERS, **_API_HEADERS}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def _answer_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return JSONResponse(error.body, error.status, headers=error.headers)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = HTTPStatus(error.status_code).phrase.lower()
    hint = "GET /openapi.json describes all routes"
    body = {"error": f"{request.method[:20]} {name}", "place": request.url.path[:200], "hint": hint}
    return JSONResponse(body, error.status_code, headers=error.headers)


async def _answer_disconnect(_request: Request, _error: Exception) -> Response:
    # the client closed the connection while it sent its body
    return Response(status_code=400)


async def _answer_bug(_request: Request, error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    body = {"error": "unexpected error in the server", "place": "", "hint": "see the server's log"}
    return JSONResponse(body, 500)
