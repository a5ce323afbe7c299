"""GET /space, /status, /openapi.json, and the files of the page."""

import asyncio
import time
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from penstock.pubsub.server.authentication import authenticate, get_service
from penstock.pubsub.server.openapi import describe_api

#: Files of the page by path, with their types; nothing else is served.
PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/event_stream.js": ("event_stream.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def get_space(request: Request) -> Response:
    """Return the declaration of the space and the limits."""
    authenticate(request)
    service = get_service(request)
    limits = {item.name: getattr(service.limits, item.name) for item in service.limits.describe()}
    return JSONResponse({**service.space.to_json(), "limits": limits})


async def get_status(request: Request) -> Response:
    """Return what the server and the engine are doing."""
    account = authenticate(request)
    service = get_service(request)
    states = await service.thread.run(service.thread.store.count_states)
    loop = asyncio.get_running_loop()
    engine = await loop.run_in_executor(None, service.engine_status)
    rights = {"can_publish": account.can_publish, "can_subscribe": account.can_subscribe}
    return JSONResponse(
        {
            "account": {"name": account.name, **rights},
            "uptime_s": round(time.monotonic() - service.started_s, 1),
            "problem": service.problem,
            "publications": {
                "accepted": service.published.total,
                "refused_by_engine": service.refused,
                "per_s": service.published.per_s(loop.time()),
            },
            "notices": {
                "read": service.feed.notices,
                "sent": service.feed.notifications,
                "last_publication": service.feed.last_publication,
            },
            "subscriptions": states,
            "streams": sum(service.streams.values()),
            "engine": engine,
        }
    )


async def get_openapi(_request: Request) -> Response:
    """Return the description of all routes."""
    return JSONResponse(describe_api())


async def get_page(request: Request) -> Response:
    """Return a file of the page."""
    name, kind = PAGE_FILES[request.url.path]
    content = files("penstock.pubsub.server").joinpath("page", name).read_bytes()
    headers = {"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"}
    return Response(content, headers=headers, media_type=kind)
